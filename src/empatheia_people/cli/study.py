"""``empatheia study``: people rate systems' replies, compare them, talk with systems or with each other."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from empatheia.cli.options import group
from empatheia.cli.output import print_json, say, show
from empatheia.cli.serve import accepted_hosts
from empatheia.errors import ConfigError
from empatheia.reading import whole_number
from empatheia.resources.chat_endpoint import ChatEndpoint
from empatheia.writing import check_place, write_whole
from empatheia_people.studies.collected import collection_page, collection_record, export_dialogues
from empatheia_people.studies.costs import cost_of, planned_seats
from empatheia_people.studies.design import is_web_address, read_design
from empatheia_people.studies.desk import Desk
from empatheia_people.studies.exporting import bonus_rows, write_bonuses
from empatheia_people.studies.exporting import export as write
from empatheia_people.studies.extra import need
from empatheia_people.studies.judged import ask_judge, keep_verdicts
from empatheia_people.studies.latex import results_latex
from empatheia_people.studies.making import make_study
from empatheia_people.studies.power import plan_means, plan_preference, plan_shares
from empatheia_people.studies.report import report_page
from empatheia_people.studies.results import study_results
from empatheia_people.studies.simulation import crowd_of, plausible, work_through
from empatheia_people.studies.standing import standing_of
from empatheia_people.studies.store import Store, shown_url

if TYPE_CHECKING:
    from empatheia_people.studies.design import Design

app = group("Run studies with people: ratings, comparisons, annotation, live talks, collection of dialogues.")
StoreArgument = Annotated[str, typer.Argument(help="Store: a file such as s.db, or postgresql://HOST/NAME.")]


@app.callback()
def check_extra(context: typer.Context) -> None:
    """Says how to get what a store needs, before a command asks for it."""
    from empatheia_people.studies.extra import need

    if context.invoked_subcommand != "plan":
        need("sqlalchemy", "alembic")


@app.command("init")
def init(
    design: Annotated[str, typer.Argument(help="Study file, or the name of one that is shipped: studies/meed2.")],
    outputs: Annotated[
        list[str] | None,
        typer.Option(help="Run folder or file of replies: PLACE, SET=PLACE or SET:SYSTEM=PLACE; several times."),
    ] = None,
    system: Annotated[list[str] | None, typer.Option(help="System of a live study: NAME=MODEL; several times.")] = None,
    db: Annotated[
        str, typer.Option(help="Store to make: a file, sqlite:///FILE or postgresql://HOST/NAME.")
    ] = "study.db",
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="Change a value: worker.cap=20; several times.")
    ] = None,
    allow_missing: Annotated[
        bool, typer.Option("--allow-missing", help="Leave out items that a system did not answer.")
    ] = False,
    data: Annotated[Path | None, typer.Option(help="Folder of corpora, for contexts of runs.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be made; make nothing.")] = False,
) -> None:
    r"""Make a study: read replies, compose HITs, write the store.

    \b
    empatheia study init studies/meed2 --outputs ED=runs/A --outputs ED=runs/B --db sqlite:///s.db
    empatheia study init studies/collect --db s.db
    """
    chosen = read_design(design, [*(settings or ()), *_systems_set(system or ())])
    made = make_study(chosen, outputs or (), data=data, allow_missing=allow_missing)
    for note in made.notes:
        say(note)
    _show_pay(chosen)
    if made.manifest.hits:
        say(f"cost: {cost_of(chosen, len(made.manifest.hits) * chosen.composition.raters)}")
    if dry_run:
        show(f"{chosen.name}: {made.summary}; nothing was written")
        return
    store = _new_store(db)
    store.create(chosen, made.material, made.manifest)
    show(f"{chosen.name}: {made.summary}, in {_shown(store)}")
    show(f"next: empatheia study serve {db}")


def _systems_set(given: Sequence[str]) -> list[str]:
    found = {}
    for each in given:
        name, equals, place = each.partition("=")
        if not equals or not name or not place:
            raise ConfigError(f"--system {each!r} is not of the form NAME=MODEL.")
        found[name] = place
    return [f"live.systems={json.dumps(found)}"] if found else []


def _show_pay(design: Design) -> None:
    pay, worker = design.payment, design.worker
    bonus = f", {design.hourly_rate_with_bonus:.2f} with every bonus" if pay.bonus else ""
    say(
        f"pay: {pay.base:.2f} {pay.currency} for {worker.minutes:g} min are {design.hourly_rate:.2f} an hour{bonus};"
        " see the minimum wages of those you ask (--set payment.base=...)"
    )


def _new_store(place: str, **more: Any) -> Store:
    return Store(place, **more)


def _open(place: str) -> Store:
    """The store of a study that is there, brought up to date."""
    store = _new_store(place)
    store.study()
    store.migrate()
    return store


def _shown(store: Store) -> str:
    return shown_url(store.url)


@app.command("status")
def status(
    store: StoreArgument, as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False
) -> None:
    """How far a study is: seats, HITs, workers, and when seats come back.

    Example: empatheia study status s.db
    """
    found = standing_of(_open(store))
    if as_json:
        print_json(found)
        return
    for name, value in found.items():
        show(f"{name.replace('_', ' ')}: {value:,}" if isinstance(value, int) else f"{name.replace('_', ' ')}: {value}")


@app.command("export")
def export(
    store: StoreArgument,
    out: Annotated[Path, typer.Option(help="Folder to write into; created if missing.")],
    form: Annotated[str, typer.Option("--format", help="csv, jsonl, parquet or empathetic_dialogues.")] = "csv",
    incomplete: Annotated[bool, typer.Option("--incomplete", help="Unfinished conversations, too.")] = False,
) -> None:
    """Write everything as files; collected dialogues in the official format of EmpatheticDialogues.

    Example: empatheia study export s.db --format empathetic_dialogues --out collected
    """
    opened = _open(store)
    if form == "empathetic_dialogues":
        written = export_dialogues(opened, out, incomplete or opened.design().collect.keep_incomplete)
    else:
        written = write(opened, out, form)
    for path in written:
        show(str(path))


@app.command("bonuses")
def bonuses(
    store: StoreArgument,
    out: Annotated[Path, typer.Option("--out", "-o", help="File to write.")] = Path("bonuses.csv"),
) -> None:
    """Write what is owed beside the platform's own pay, as lines id,amount: bonuses won, further HITs of a submission.

    Example: empatheia study bonuses s.db -o bonuses.csv
    """
    check_place(out)
    opened = _open(store)
    owed, n_lost = bonus_rows(opened)
    if n_lost:
        field = opened.design().worker.assignment_field
        say(f"{n_lost:,} payments are left out: the link by which people came has no ?{field}=...")
    if not owed:
        show("no bonus is owed; nothing was written")
        return
    write_bonuses(owed, out)
    show(f"{out}: {len(owed):,} bonuses, {sum(owed.values()):,.2f} {opened.design().payment.currency}")


@app.command("report")
def report(
    store: StoreArgument,
    out: Annotated[Path, typer.Option("--out", "-o", help="Page to write.")] = Path("study.html"),
    as_json: Annotated[bool, typer.Option("--json", help="Print all numbers as JSON, and write no page.")] = False,
    as_latex: Annotated[
        bool, typer.Option("--latex", help="Print the tables of results for LaTeX (booktabs), and write no page.")
    ] = False,
) -> None:
    r"""Write the page of results: shares, means, comparisons, agreement, filters, beside the published table.

    \b
    empatheia study report s.db -o study.html
    empatheia study report s.db --latex
    """
    if as_json and as_latex:
        raise ConfigError("--json and --latex are two forms of one answer; choose one.")
    if not (as_json or as_latex):
        check_place(out)
    opened = _open(store)
    if opened.design().protocol == "collect":
        if as_latex:
            raise ConfigError("a collection has no table of results; leave --latex out.")

        record, page = collection_record(opened), collection_page
        if as_json:
            print_json(record)
        else:
            write_whole(out, page(opened.design(), record))
            show(f"{out}: {record['conversations']:,} conversations")
        return
    results = study_results(opened)
    if as_json:
        print_json(results.to_dict())
        return
    if as_latex:
        show(results_latex(results).rstrip())
        return
    write_whole(out, report_page(results))
    show(f"{out}: {results.sheets[1]:,} of {results.sheets[0]:,} assignments, {results.answers[1]:,} answers")


@app.command("close")
def close(store: StoreArgument) -> None:
    """Stop giving out HITs; open ones may still be sent.

    Example: empatheia study close s.db
    """
    opened = _open(store)
    opened.finish()
    show(f"{opened.design().name} is closed")


@app.command("backup")
def backup(store: StoreArgument, out: Annotated[Path, typer.Option(help="File to write.")]) -> None:
    """Copy a SQLite store while it is in use.

    Example: empatheia study backup s.db --out copy.db
    """
    _open(store).backup(out)
    show(str(out))


@app.command("invite")
def invite(
    store: StoreArgument,
    n: Annotated[int, typer.Option("-n", "--number", help="How many links.", min=1, max=10_000)] = 1,
    first: Annotated[int, typer.Option(help="Number of the first link; each number is one person.", min=1)] = 1,
    days: Annotated[float, typer.Option(help="Days until the links expire.")] = 30,
    base: Annotated[str, typer.Option(help="Address of the server.")] = "http://127.0.0.1:8000",
) -> None:
    """Print invitation links, one for each person, for studies without a crowd platform.

    Example: empatheia study invite s.db -n 20 --base https://study.example.org
    """
    if not 0 < days <= 36_500:
        raise ConfigError(f"--days is {days:g}; accepted: above 0, up to 36,500.")
    if not is_web_address(base):
        raise ConfigError(
            f"--base is {base[:80]!r}; accepted: https://HOST or http://HOST, where people reach the server."
        )
    desk = Desk(_open(store))
    for number in range(first, first + n):
        show(f"{base.rstrip('/')}/?invitation={desk.sessions.invite(number, days)}")


@app.command("judge")
def judge(
    store: StoreArgument,
    model: Annotated[str, typer.Option(help="Name under which the endpoint serves the judge.")],
    base_url: Annotated[
        str | None, typer.Option(help="OpenAI-compatible endpoint. [default: EMPATHEIA_BASE_URL]")
    ] = None,
    key_env: Annotated[str, typer.Option(help="Environment variable that holds the key.")] = "EMPATHEIA_API_KEY",
    out: Annotated[Path, typer.Option(help="Folder of answers; questions answered there are not asked again.")] = Path(
        "judged"
    ),
) -> None:
    """Let a language model rate the same pairs, as a marked rater beside people, never among them.

    Example: empatheia study judge s.db --base-url http://localhost:8000/v1 --model NAME
    """
    opened = _open(store)
    endpoint = ChatEndpoint(model, base_url, key_variable=key_env)
    items = opened.items().values()
    verdicts = ask_judge(opened.design(), items, opened.study().systems, endpoint, out, progress=say)
    keep_verdicts(opened, verdicts)
    show(f"{len(verdicts):,} verdicts of {model} are in the store; see empatheia study report {store}")


@app.command("plan")
def plan(
    shares: Annotated[
        str | None, typer.Option(help="Two shares to distinguish, e.g. 0.32,0.35: replies rated good.")
    ] = None,
    difference: Annotated[float | None, typer.Option(help="Difference of means on a scale, in points.")] = None,
    deviation: Annotated[float, typer.Option(help="Standard deviation of single ratings on the scale.")] = 1.3,
    prefer: Annotated[
        float | None, typer.Option(help="Share of choices for the better system of a pair, e.g. 0.6.")
    ] = None,
    ties: Annotated[float, typer.Option(help="Share of judgements without a choice (ties).")] = 0.3,
    raters: Annotated[int, typer.Option(help="Raters for each dialogue.", min=1)] = 4,
    correlation: Annotated[float, typer.Option(help="Correlation of ratings within a dialogue.")] = 0.3,
    power: Annotated[float, typer.Option(help="Power: probability of finding the difference.")] = 0.8,
    alpha: Annotated[float, typer.Option(help="Level of the two-sided test.")] = 0.05,
    comparisons: Annotated[int, typer.Option(help="Pairs of systems.", min=1)] = 1,
    design: Annotated[
        str | None, typer.Option(help="Study file whose pay, fee and HITs give the cost, e.g. studies/rashkin_ratings.")
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="Change a value of the design: payment.base=2; several times.")
    ] = None,
    systems: Annotated[int, typer.Option(help="Systems of the study, for the cost.", min=1)] = 2,
    as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False,
) -> None:
    r"""Say how many items and raters a study needs for a difference, what that rests on, and what it costs.

    \b
    empatheia study plan --shares 0.32,0.35 --raters 4
    empatheia study plan --difference 0.3 --raters 3 --design studies/rashkin_ratings --systems 4
    empatheia study plan --prefer 0.6 --comparisons 3
    """
    if [shares, difference, prefer].count(None) != 2:
        raise ConfigError("give one of --shares, --difference and --prefer.")
    wanted: dict[str, Any] = {"raters": raters, "power": power, "alpha": alpha, "comparisons": comparisons}
    if shares is not None:
        try:
            one, other = (float(each) for each in shares.split(","))
        except ValueError:
            raise ConfigError(f"--shares is {shares!r}; accepted: two numbers such as 0.32,0.35.") from None
        found = plan_shares(one, other, correlation=correlation, **wanted)
    elif difference is not None:
        found = plan_means(difference, deviation, correlation=correlation, **wanted)
    else:
        found = plan_preference(float(prefer or 0), ties, **wanted)
    cost = None
    if design is not None:
        chosen = read_design(design, settings or ())
        cost = cost_of(chosen, planned_seats(chosen, found, systems))
    elif settings:
        raise ConfigError("--set changes a value of the design; name one with --design.")
    if as_json:
        print_json(asdict(found) | {"cost": None if cost is None else asdict(cost)})
        return
    show(
        f"{found.items:,} dialogues x {found.raters} raters = {found.ratings:,} ratings of each system or pair, for a"
        f" power of {found.power:g} at alpha {found.alpha:.4g}"
    )
    for line in found.assumed:
        show(f"  assumed: {line}")
    show(f"cost: {cost}, {systems} systems" if cost is not None else "cost: name the study with --design")


@app.command("simulate")
def simulate(
    store: StoreArgument,
    raters: Annotated[str, typer.Option(help="Kinds and numbers: honest=8,random=1; see the docs.")] = "honest=8",
    hits: Annotated[int, typer.Option(help="HITs of each worker, at most.", min=1)] = 50,
    seed: Annotated[int, typer.Option(help="Seed of the simulation: of the dice, and of which system is good.")] = 0,
    null: Annotated[bool, typer.Option("--null", help="All systems are equally good; differences are chance.")] = False,
) -> None:
    r"""Let simulated workers go through a study, to see its report before people come. Never mix them with people.

    \b
    empatheia study simulate trial.db --raters honest=8,random=1,okay=1
    empatheia study simulate trial.db --null
    """
    numbers = {}
    for part in raters.split(","):
        kind, _, n = part.partition("=")
        numbers[kind.strip()] = whole_number(n or "1") or 0
    if not sum(numbers.values()):
        raise ConfigError(f"--raters is {raters!r}; accepted: kinds and numbers such as honest=8,random=1.")
    gone = 0.0  # seconds that the made-up workers took

    def pass_by(seconds: float) -> None:
        nonlocal gone
        gone += seconds

    _open(store)
    desk = Desk(_new_store(store, clock=lambda: time.time() + gone))
    if desk.design.protocol == "collect":
        raise ConfigError("a collection is made of what two people write; made-up workers only rate.")
    opinion = plausible(desk.design, desk.store.study().systems, seed, null)
    crowd = crowd_of(numbers, opinion, seed)
    done, names = 0, [f"simulated-{rater.kind}-{seed}-{number}" for number, rater in enumerate(crowd)]
    for _ in range(hits):  # a HIT each in turn, so that every kind has its share
        handed = sum(work_through(desk, rater, name, passed=pass_by) for rater, name in zip(crowd, names, strict=True))
        done += handed
        if not handed:
            break
    show(f"{len(crowd)} made-up workers handed in {done:,} HITs")
    table = ", where the printed table does not have them" if opinion.shares else ""
    quality = ", ".join(
        f"{name} {value:+.2f}" for name, value in sorted(opinion.strengths.items(), key=lambda x: -x[1])
    )
    say(f"made-up quality, in deviations of one rater's chance{table}: {quality}")


@app.command("serve")
def serve(
    store: StoreArgument,
    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 = all.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port; 0 = a free one.", min=0, max=65535)] = 8000,
    hosts: Annotated[
        list[str] | None,
        typer.Option(
            "--allowed-host", help="Accepted host name; several times. [default on a loopback address: its names]"
        ),
    ] = None,
    root_path: Annotated[str, typer.Option(help="Path that a proxy in front strips.")] = "",
) -> None:
    """Serve the pages of a study.

    Example: empatheia study serve s.db
    """
    need("fastapi", "uvicorn", "websockets")
    from empatheia_people.studies.serving import run

    opened = _open(store)
    run(opened, host, port, accepted_hosts(host, hosts or ()), root_path.rstrip("/"), told=show)

"""What a study costs: seats, what each is paid, and what the platform adds."""

from __future__ import annotations

import math
from dataclasses import dataclass

from empatheia.errors import ConfigError
from empatheia_people.studies.design import PAIRED, Design
from empatheia_people.studies.power import Plan


@dataclass(frozen=True, slots=True)
class Cost:
    """Of a whole study.

    Attributes:
        seats: HITs times raters.
        least: Every seat with its base pay, and the fee on it.
        most: With every bonus won.
        currency: Of both.
        assumed: In words, what was multiplied.
    """

    seats: int
    least: float
    most: float
    currency: str
    assumed: str

    def __str__(self) -> str:
        most = f" to {self.most:,.2f}" if self.most > self.least else ""
        return f"{self.least:,.2f}{most} {self.currency} ({self.assumed})"


def cost_of(design: Design, seats: int) -> Cost:
    """The cost of so many seats.

    >>> from empatheia_people.studies.design import read_design
    >>> str(cost_of(read_design("studies/meed2"), 2400))
    '1,152.00 to 1,440.00 USD (2,400 seats x 0.40, up to 0.50 with every bonus, + 20 % for the platform)'
    """
    pay = design.payment
    bonus = f", up to {pay.base + pay.bonus:.2f} with every bonus" if pay.bonus else ""
    fee = f"+ {100 * pay.fee:g} % for the platform" if pay.fee else "without what a platform adds (payment.fee is 0)"
    factor = seats * (1 + pay.fee)
    assumed = f"{seats:,} seats x {pay.base:.2f}{bonus}, {fee}"
    return Cost(seats, factor * pay.base, factor * (pay.base + pay.bonus), pay.currency, assumed)


def planned_seats(design: Design, plan: Plan, systems: int) -> int:
    """Seats for the dialogues of a plan.

    Args:
        design: Of the study; its raters are the plan's.
        plan: Dialogues of each system or pair.
        systems: How many are compared, without the corpus' reply.

    Raises:
        ConfigError: The design rates no replies, or a comparison has fewer than two systems.
    """
    setup = design.composition
    if design.protocol in ("collect", "live", "turn_annotation"):
        raise ConfigError(
            f"{design.name} has protocol {design.protocol}; accepted: designs that rate or compare replies."
        )
    n = systems + setup.with_gold
    if n < 2:
        raise ConfigError(f"--systems is {systems}; a difference needs 2 or more.")
    screens = plan.items
    if setup.cards == "pair" or design.protocol in PAIRED:
        screens *= n - 1 if setup.against else n * (n - 1) // 2
    elif setup.cards == "one":
        screens *= n
    elif setup.cards_per_item is not None:
        screens = math.ceil(screens * n / min(setup.cards_per_item, n))
    return math.ceil(screens / setup.items_per_hit) * plan.raters

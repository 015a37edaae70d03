"""Doubts about a text: ordinary English passes, other languages and scripts do not. All sentences are our own."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from empatheia.text.uncertainty import CONTROLS, EMOJI, FEW_KNOWN, LANGUAGE, NONE_KNOWN, SCRIPT, doubts
from empatheia_research.text.tokenizer import DialogueTokenizer

ENGLISH = """\
I lost my job
ugh, traffic
Hi
no
Finally!
So tired.
promotion!!!
Dad died.
Exams tomorrow, help
lonely tonight
Best day ever :)
My café au lait was cold again.
My fiancée broke up with me in Los Angeles.
We flew to Las Vegas!
Las Vegas, baby
San José is far.
Zoë left me.
Chloé and André got married
Beyoncé tickets!
It was a déjà vu.
I ate a whole crème brûlée
Told ya so
c'mon, really?
O'Brien's pub burned down
D'Angelo scored!
The war made men die on the main road.
me too
lol
OMG
My son has a sale on pour over coffee.
Piñata party
I'm so über excited
hmm
that sucks
Der Spiegel wrote about our town.
"""
SPANISH = """\
Ayer perdí mi trabajo y no sé qué hacer.
Estoy muy triste porque murió mi perro.
Mi hermana se casa el sábado.
Tengo miedo de los exámenes.
Hoy fue un día muy largo.
Mi novio me dejó por otra.
No puedo dormir desde hace una semana.
Estamos muy orgullosos de nuestra hija.
Ella nunca me llama.
Me robaron la bicicleta delante de casa.
Quiero viajar, pero no tengo dinero.
Todo salió como esperaba.
Mi abuela está en el hospital.
Hay mucho ruido en la calle.
Siempre llega tarde y nunca pide perdón.
"""
FRENCH = """\
J'ai perdu mon travail hier.
Je suis très triste parce que mon chien est mort.
Ma soeur se marie samedi.
Elle ne m'appelle jamais.
Nous sommes fiers de notre fille.
C'est la pire journée de ma vie.
On m'a volé mon vélo devant la maison.
Mon copain m'a quittée pour une autre.
Il y a trop de bruit dans la rue.
Je n'arrive pas à dormir.
Les enfants sont enfin chez leur père.
Quelqu'un a mangé tout le gâteau.
Ma grand-mère est à l'hôpital.
Demain, j'ai un examen et j'ai peur.
Tu as toujours été là avec moi.
"""
GERMAN = """\
Ich habe gestern meine Arbeit verloren.
Mein Hund ist gestorben und ich bin traurig.
Meine Schwester heiratet am Samstag.
Sie ruft mich nie an.
Wir sind sehr stolz auf unsere Tochter.
Das war der schlimmste Tag meines Lebens.
Jemand hat mein Fahrrad gestohlen, direkt vor der Haustür.
Morgen ist die Prüfung.
Er hat mich wegen einer anderen verlassen.
Es ist zu laut auf der Straße.
Ich kann nicht schlafen.
Oma liegt im Krankenhaus und niemand sagt uns etwas.
Die Kinder sind endlich wieder bei ihrem Vater.
Alles lief wie geplant!
Warum kommt er immer zu spät, ohne sich zu entschuldigen?
"""
DUTCH = """\
Ik ben gisteren mijn baan kwijtgeraakt.
Mijn hond is dood en ik ben verdrietig.
Mijn zus trouwt zaterdag.
Ze belt me nooit.
Wij zijn heel trots op onze dochter.
Dit was de ergste dag van mijn leven.
Iemand heeft voor de deur mijn fiets gestolen.
Morgen heb ik een examen.
Hij heeft mij verlaten voor een ander.
Er is te veel lawaai op straat.
Ik kan niet slapen.
Oma ligt in het ziekenhuis en niemand vertelt ons iets.
De kinderen zijn weer bij hun vader.
Alles ging zoals het moest!
Waarom komt hij altijd te laat?
"""
ITALIAN = """\
Ieri ho perso il lavoro.
Sono triste perché è morto il mio cane.
Mia sorella si sposa sabato.
Lei non mi chiama mai.
Siamo molto orgogliosi di nostra figlia.
È stato il giorno peggiore della mia vita.
Mi hanno rubato la bici davanti a casa.
Domani ho un esame e ho paura.
Mi ha lasciata per un'altra.
C'è troppo rumore nella strada.
Non riesco a dormire.
La nonna sta in ospedale e nessuno ci dice niente.
I bambini sono di nuovo dal padre.
Tutto è andato come previsto!
Arriva sempre tardi senza chiedere scusa.
"""
CHINESE = """\
我昨天失去了工作。
我的狗死了，我很难过。
我妹妹星期六结婚。
她从来不给我打电话。
我们为女儿感到骄傲。
这是我一生中最糟糕的一天。
有人偷了我的自行车。
明天我有考试。
他为了别人离开了我。
街上太吵了。
我睡不着。
奶奶住院了。
孩子们终于回到父亲身边。
一切都很顺利！
他为什么总是迟到？
"""
RUSSIAN = """\
Вчера я потерял работу.
Моя собака умерла, и мне грустно.
Моя сестра выходит замуж в субботу.
Она мне никогда не звонит.
Мы очень гордимся нашей дочерью.
Это был худший день в моей жизни.
У меня украли велосипед.
Завтра у меня экзамен.
Он ушёл от меня к другой.
На улице слишком шумно.
Я не могу уснуть.
Бабушка лежит в больнице.
Дети наконец у отца.
Всё прошло хорошо!
Почему он всегда опаздывает?
"""


@pytest.fixture(scope="module")
def tokenizer():
    return DialogueTokenizer.train_bpe([ENGLISH] * 3, size=700)


@pytest.mark.parametrize("text", ENGLISH.splitlines())
def test_ordinary_english_raises_no_doubt(text):
    assert doubts(text) == ()


@pytest.mark.parametrize("language", ["SPANISH", "FRENCH", "GERMAN", "DUTCH", "ITALIAN"])
def test_other_languages_are_noticed(language):
    sentences = globals()[language].splitlines()
    assert len(sentences) == 15
    assert [s for s in sentences if doubts(s) != (LANGUAGE,)] == []


@pytest.mark.parametrize("sentences", [CHINESE, RUSSIAN], ids=["Chinese", "Russian"])
def test_other_scripts_are_noticed(sentences):
    assert [s for s in sentences.splitlines() if doubts(s) != (SCRIPT,)] == []


def test_an_english_conversation_may_hold_a_foreign_phrase():
    assert doubts("My grandmother always said 'mañana será otro día' when I was sad, and I miss that.") == ()
    assert doubts("I said hello to 王伟 from my class today.") == ()


def test_emoji_and_controls():
    assert doubts("I passed 🎉") == (EMOJI,)
    assert doubts("family 👩‍👧") == (EMOJI,)
    assert doubts("I \x00 am \x1b[0m fine") == (CONTROLS,)
    assert doubts("I am \u202efine") == (CONTROLS,)
    assert doubts("fine\ttoday\r\nreally") == ()
    assert doubts("😭 \x07 мне грустно") == (EMOJI, CONTROLS, SCRIPT)


def test_unknown_words_need_a_tokenizer(tokenizer):
    assert doubts("qwxzv vbnkjq zzkpt") == ()
    assert doubts("qwxzv vbnkjq zzkpt", tokenizer) == (NONE_KNOWN,)
    assert doubts("I lost my job", tokenizer) == ()
    assert NONE_KNOWN in doubts("😭", tokenizer)
    # Finnish: in none of the word lists, but nearly no word is known either
    assert doubts("Menetin työpaikkani viime viikolla Helsingissä yhdessä", tokenizer) in [(FEW_KNOWN,), (NONE_KNOWN,)]
    assert doubts("?!", tokenizer) == ()


@settings(max_examples=200)
@given(st.text(max_size=200))
def test_any_text_gets_readable_reasons(text):
    reasons = doubts(text)
    assert len(set(reasons)) == len(reasons)
    assert all(reason in (EMOJI, CONTROLS, SCRIPT, LANGUAGE) for reason in reasons)


def test_a_million_characters():
    assert doubts("word " * 200_000) == ()
    assert doubts("a" * 1_000_000) == ()
    assert doubts("l'" * 500_000 + "a") in [(), (LANGUAGE,)]
    assert doubts("😭" * 250_000) == (EMOJI,)


class OfList:
    """Knows the words of a list."""

    def known_word_share(self, text: str) -> float:
        words = text.lower().split()
        return sum(word in KNOWN for word in words) / len(words)


KNOWN = {"my", "dog", "bit", "leg", "and", "i", "am", "so", "scared", "of"}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("My dgo bit my leg adn I am scared", ("2 of 9 words are not known (dgo, adn); perhaps misspelt",)),
        ("My dgo", ("1 of 2 words is not known (dgo); perhaps misspelt",)),
        ("aa bb cc dd and I", ("4 of 6 words are not known (aa, bb, cc ...); perhaps misspelt",)),
        ("My dog bit my leg and I am so scared of Rufus", ()),  # one name in a long text says nothing
        ("My dog bit my leg", ()),
        ("Zzz qqq", (NONE_KNOWN,)),
    ],
)
def test_words_that_are_not_known_are_counted(text, told):
    assert doubts(text, OfList()) == told

"""The patterns by which a clause is found, stripped, and refused. All are matched against the speaker's own words."""

from __future__ import annotations

import re

ABBREVIATION = re.compile(r"\b(?:mr|mrs|ms|dr|prof|st|vs|jr|sr|e\.g|i\.e|a\.m|p\.m|no|approx)\.\Z", re.IGNORECASE)
END = re.compile(
    r"(?<![.!?…])[.!?…]++[\"')\]]*+(?=\s|\Z|(?-i:[A-Z]))|\n+|;|\s[-–—]+\s|—|[\U0001f000-\U0001ffff\u2600-\u27bf\ufe0f]+"
    r"|(?<=\s)(?:lol+|lmf?ao+|haha\w*|omg|hehe|rofl|xd|smh)\b[,.!?]*",
    re.IGNORECASE,
)
SUBJECT = (
    r"(?:i|we|he|she|they|my|our|his|her|their|the|a|an|this|some|someone|somebody|nobody|everyone|everybody|"
    r"there|no\s+one|i'm|im|i've|ive|i'd|i'll|he's|she's|they're|we're|it's|it|that|mum|mom|dad|nan|people)"
)
# Places where a long sentence may be cut: a whole clause stands before, and one with a subject of its own behind.
CUT = re.compile(
    rf"(?:,?(?<!\s)\s+(?:and(?:\s+(?:then|now|so))?|&|n|but|so|then|because|bc|cos|cuz|coz|cause|when|while|whereas|although|"
    rf"though|even\s+though)|,)\s+(?={SUBJECT}\b)|,\s+(?=which\b|who\b|but\b|so\b|and\b|because\b|like\b)|:\s+",
    re.IGNORECASE,
)
LEAD = re.compile(
    r"(?:not\s+(?:gonna|going\s+to)\s+lie|ngl)\s*,?\s+(?:but\s+)?|so\s+(?-i:(?=[A-Z][a-z]))|(?:yea|yeah|yeh|yes|no|nah|well|ok|okay|oh)\s+but\s+|no\s+(?=(?:i|we|he|she|they"
    r"|my|it|i'm|it's)\b)|(?:nah|yep|yeah|yeh|yup)\s+|"
    r"(?:(?:oh\s+|just\s+|well\s+)?(?:great|brilliant|lovely|perfect|wonderful|fantastic|typical)\s*,\s*)|"
    r"(?:(?:ok\s+so|okay\s+so|alright\s+so|and\s+so|so\s+anyway|anyway\s+so|so\s+basically)\s+|well\s+(?!done|"
    r"being|known|over|below|above|off|up)|like\s+(?=(?:i|we|he|she|they|it|my|i'm|i've)\b)|(?:oh|ah|aw|well|"
    r"just)\s+(?:great|brilliant|lovely|perfect|wonderful|fantastic|yes|yeah|no|yea|god|gosh|man|wow|well|boy|"
    r"my)\s*,\s*|(?:yes|yeah|yah|aye|yea|yep|yup|no|nope|nah|oh|ah|aw|aww|well|ok|okay|right|wow|man|dude|bro|hey|hi|"
    r"hello|haha|anyway|"
    r"anyways|honestly|basically|actually|unfortunately|fortunately|sadly|luckily|thankfully|hopefully|like|so|and|but|"
    r"plus|also|then|god|gosh|jesus|ugh|sigh|sorry|thanks|thank\s+you|mate|pal|friend|"
    r"guys|morning|good\s+morning|good\s+evening|good\s+afternoon|goodnight|absolutely|exactly|definitely|"
    r"indeed|true|sure|"
    r"of\s+course|for\s+real|to\s+be\s+honest|tbh|not\s+gonna\s+lie|i\s+mean|i\s+guess|i\s+suppose|my\s+guy|"
    r"my\s+god|oh\s+my\s+god|"
    r"oh\s+my\s+gosh|guess\s+what|long\s+story\s+short|in\s+fact|at\s+first|you\s+know|look|listen)\s*[,:!.-]+\s*"
    r"|(?:yes|yeah|yea|yep|yup|nope|nah|and|but|also|because|cause|cuz|cos|though|although|then|plus|anyway|"
    r"anyways|honestly|"
    r"basically|oh|ugh|so|ok|okay|sometimes\s+though|i\s+guess|i\s+mean|i\s+suppose|i\s+must\s+say|i\s+have\s+to\s+say|"
    rf"i\s+must\s+admit|i\s+have\s+to\s+admit|i\s+gotta\s+say|and\s+then|and\s+so|just\s+that|even\s+though|"
    rf"the\s+thing\s+is)\s+(?={SUBJECT}\b))",
    re.IGNORECASE,
)
COORDINATION = re.compile(r"\A(?:and|but|because|cause|n|then|yet|or|plus)\s+", re.IGNORECASE)
TAIL = re.compile(
    r",\s+(?:i|we)\s+(?:do|did|am|was|have)\Z|"
    r",\s+(?:love|darling|babe|honey|pal|boss|son|friend)\Z|"
    r",?\s+(?:you\s+know(?:\s+what\s+i\s+mean)?|isn't\s+it|wasn't\s+it|innit|bro|mate|man|dude|lads|guys|though|"
    r"lol|like|right|o|"
    r"if\s+you\s+see\s+what\s+i\s+mean|i\s+guess|i\s+suppose|i\s+think|or\s+whatever|or\s+something|and\s+all|"
    r"and\s+stuff|"
    r"and\s+everything|to\s+be\s+honest|for\s+real|unfortunately|honestly|actually|as\s+well|my\s+guy|"
    r"my\s+friend|doctor|sir|ma|maam|ma'am|dear|"
    r"believe\s+me|of\s+course|anyway|anyways|please|rip|period|full\s+stop|ha|haha|eh|huh|ok|okay|yes|yeah|no)\Z",
    re.IGNORECASE,
)
ADDRESSED = re.compile(
    r"\b(?:you|your|yours|yourself|you're|youre|youve|youll|youd|you've|you'd|you'll|u|ur|urself|thee|y'all|"
    r"yall|yous|ye|thank|thanks|sorry|"
    r"please|hello|congrats|congratulations|bye|goodbye|goodnight|welcome)\b",
    re.IGNORECASE,
)
NOT_ASSERTED = re.compile(
    r"\A(?:mine|yours|if|like|as\s+if|unless|until|till|what|why|how|who|whose|whom|which|where|when's|is|are"
    r"|am\s+i|was|"
    r"were|do|does|did|can|could|"
    r"would|will|should|shall|may|might|have\s+(?:i|we|they|you)|has|had\s+i|let|let's|lets|imagine|guess|tell|"
    r"help|stop|"
    r"be|wish|pray|don't\s+(?!know|think|want|feel|have|even|need|like)|to|than|as|of|or|nor|that|those|"
    r"these|whether|despite|because|since|once|maybe|perhaps|except|including|especially|such\s+as|e\.g|hence|"
    r"not\s+that|at\s+least|bravo|well\s+done|(?:somebody|someone)\s+(?:give|help|tell|stop|save|please|get)|"
    r"good\s+for|whatever|however|though|although|whereas|too|either|neither|via|per|by|ask|go|come|"
    r"take|give|make|keep|see|say|check|look|listen|wait|hang|put|get|try|remember|trust|never\s+mind|"
    r"hers|his|theirs|so\s+what|fair|cheers|same\s+here|me\s+too|me\s+neither|good\s+(?:luck|point|idea|question|news)|"
    r"love\s+(?:that|it|this)|talk|fun|crazy|mad|wild|weird|funny|true|agreed|cool|nice|great|awesome|amazing|exactly|"
    r"absolutely|definitely|certainly|indeed|sure|correct|right|wrong|obviously|clearly)\b",
    re.IGNORECASE,
)
THIN = re.compile(
    r"(?:i|we)\s+(?:(?:really|totally|just|also|definitely|completely|absolutely|still|only|never|always|"
    r"certainly|too)\s+)*"
    r"(?:(?:do|did|know|agree|guess|think|hope|believe|suppose|see|understand|can|will|would|am|was|have|had|"
    r"should|could|"
    r"don't|didn't|can't|won't|haven't|wasn't|doubt|bet|feel|imagine|wish|tried|try|mean|said|say|love|loved|"
    r"like|liked|hate|"
    r"enjoy|enjoyed|want|wanted|need|needed|agreed|figured|figure)(?:\s+(?:so|not|know|it|that|this|too|to|one|"
    r"be|do|either|"
    r"right|them|think\s+so|agree|mind|remember|really|was|though|tell|wait|believe\s+it|blame\s+\w+|care))*)\s*"
    r"|(?:i'm|i\s+am|i've|i'll|i'd|we're)\s*(?:(?:so|very|really|just|pretty|quite|too|all|not|doing|feeling)\s+)*"
    r"(?:fine|ok|okay|good|well|great|alright|here|back|sure|not|kidding|joking|serious|glad|trying|listening|"
    r"right|wrong|"
    r"sorry|done|it|there|positive|certain|confused|curious|going|interested|in|on|up|off|out|"
    r"home)?(?:\s+(?:thanks|too|now|sure|"
    r"though|then|with\s+(?:it|that)|about\s+(?:it|that)))*\s*"
    r"|.*\b(?:i\s+have\s+a\s+question|just\s+kidding|i\s+need\s+(?:some\s+)?(?:help|advice)|tell\s+(?:someone|"
    r"somebody|anyone)|"
    r"i\s+(?:just\s+)?(?:wanted|want|wanna|need|needed)\s+to\s+(?:tell|share|say|talk|vent|ask)|"
    r"talk\s+about\s+it|i\s+know\s+right|i'm\s+not\s+saying|"
    r"what\s+i\s+mean|as\s+i\s+said|like\s+i\s+said)\b.*",
    re.IGNORECASE,
)
# What a listener must not state of the speaker, or of others: verdicts, and being unloved.
VERDICT = re.compile(
    r"\b(?:i'm|i\s+am|i\s+was|i've\s+been|we're|we\s+are|is|was|are|were|he's|she's|they're|it's|am|"
    r"such)\s+(?:\w+\s+){0,3}?"
    r"(?:ugly|stupid|failure|loser|idiot|idiots|fat|worthless|useless|burden|pathetic|disgusting|dumb|mess|weak|"
    r"unlovable|boring|"
    r"monster|moron|morons|pig|pigs|snake|jerk|liar|liars|narcissist|psycho|crazy|insane|lazy|cow|coward|fool|"
    r"joke|evil|trash|crap|"
    r"rubbish|garbage|selfish|hopeless|toxic|abusive|punk|(?:bad|terrible|horrible|awful|rubbish|shit|worst)\s+"
    r"(?:person|mum|mom|mother|dad|father|parent|wife|husband|friend|daughter|son|teacher|human))\b"
    r"|\b(?:nobody|no\s+one|noone|no-one|none)\b.*\b(?:me|cares?|likes?|loves?|wants?)\b"
    r"|\b(?:hate|hates|can't\s+stand)\s+(?:me|myself|my\s+(?:body|face|self|life|life))\b|\bmy\s+(?:own\s+)?fault\b"
    r"|\b(?:everyone|everybody|they\s+all)\s+(?:hates|hate|thinks|laughs)\b|\b(?:my\s+life\s+is|i\s+deserve)\b"
    r"|\b(?:stupid|dumb|idiot|idiots|ugly|fat|lazy|pathetic|useless)\s+(?:\w+\s+)?(?:people|man|woman|boy|girl|"
    r"me|bloke|kid|customer)",
    re.IGNORECASE,
)
GENERIC = re.compile(
    r"\A(?:people|men|women|life|god|kids\s+these|everyone|everybody|nobody|nothing|things|time|love|money|"
    r"some\s+people|"
    r"most\s+people|boys|girls|humans?|karma|friends|family)\s+(?:\w+\s+)?(?:is|are|can|should|never|always|"
    r"will|do|don't|has|have|"
    r"needs?|makes?|gets?|goes|go|deserves?|really|just)\b|\A[a-z]+(?<!k)s\s+(?:are|can|do|will|always|never|don't)\b",
    re.IGNORECASE,
)
# Turns of phrase that are right in the speaker's mouth and strange in a listener's, or that no rule here turns.
DIALECT = re.compile(
    r"\b(?:asked|said|told\s+me)\s+(?:me\s+)?(?:if|whether|that|why)\s+(?:daddy|dad|mummy|mommy|mum|mom)\b|\bmines\b|\bdo\s+be\b|\b(\w{3,})-\1\b|\bits\s+(?:his|her|my|a|the|not|just|so|too|all|been|like|really)\b|\bits\s+\w+\s+(?:but|and|so)\b|"
    r"'s (?:took|went|gave|broke|did|came)\b|"
    r"\Awe\s+all\s+(?:make|have|need|get|do|die|know|want|feel|go|can|are|should)\b|"
    r"\b(?:says|said|goes)\s+(?:mum|mummy|mom|mommy|mam|dad|daddy|papa|mama|uncle|aunty|sir|nan"
    r"|gran)\s+(?:it|i|you|we|he|she|they|the|this)\b|"
    r"\bdon\b(?!')|\A(?:i|we)\s+do\s+every\b|\w\s+i\s+(?:hope|wish)\s+to\b|\A(?:i|we)\s+(?:have|do|did|am|was"
    r"|would|could|had)\s*,|"
    r"\S\s+i\s+mean\b|\Avery\b|\A(?:he|she|they|it|there)\b[^,]*\s(?!that|and|but|so|because|when|if|like|as|than"
    r"|where|how"
    r"|what|"
    r"who|think|knows?|says?|said|told)\w+\s(?:i|we)\s(?:can|could|can't|am|was|have|had|don't|just|got|feel|know)\b|"
    r"\b(?:he|she|it)\s+(?:don't|were|have|do)\b|\bi\s+(?:seen|done|gone|taken|known|been|drunk|rung|begun)\b|"
    r"\bain't\b|\b(?:yer|yous|nowt|owt|"
    r"summat|tae|noo|dae|aye|wean|auld|fae|ken|och|ya|po|naething|gied|aff|wi|\w{3,}nae|doon|gonnae|dis|dat|dem|"
    r"dey)\b|\ban\s+[bcdfgjklmnpqrstvwz]\w|"
    r"\bo\b|\b(?:we|they|you)\s+was\b|\b(?:don't|didn't|never|not|can't|won't)\b[^,]*\b(?:nothing|nobody|"
    r"neither|none)\b|"
    r"\A(?:i|we|he|she|they)\s+(?!think|thought|know|knew|hope|wish|feel|felt|guess|believe|said|say|heard|mean|"
    r"swear|bet|wonder)\w+\s+(?:i|we|he|she|"
    r"they)\s+\w+|\bii\b|"
    r"\b(?!(?:and|but|because|so|when|that|if|while|today|yesterday|since|after|where|how|think|know|"
    r"hope)\b)[a-z]+\s+my\s+(?:wife|husband|sister|"
    r"brother|son|daughter|cousin|mate)\s+(?:went|was|is|has|had|got|said|came|did)\b",
    re.IGNORECASE,
)
# "He did eventually": the verb stands for what was said before. "She's a nurse": nothing that carries a feeling.
ELLIPTIC = re.compile(
    r"\A(?:\w+\s+){1,2}(?:did|does|is|was|has|had|do|are|were|will|would|can|could|didn't|doesn't|isn't|wasn't|"
    r"hasn't|won't|can't|couldn't)"
    r"(?:\s+(?:eventually|too|so|now|though|either|not|really|once|again|indeed|also|actually|it|that|probably|"
    r"definitely|just))*\s*(?:,|\Z)"
    r"|\b(?:he|she|they)(?:'s|'re|\s+is|\s+are|\s+was)\s+(?:just\s+|such\s+|really\s+|only\s+)?(?:a|an|the)\s+[\w-]+\Z",
    re.IGNORECASE,
)
FELT_WHEN = re.compile(
    r"\A\W*(?:(?:so|and|but|well)\s+)?i(?:'m|\s+am|\s+was|\s+felt|\s+feel|\s+got|\s+get|"
    r"\s+had\s+been)\s+(?:\w+\s+){1,5}(?:when|because|bc|cause|cuz|that)\s+\Z",
    re.IGNORECASE,
)
ASKS = re.compile(
    r",\s*(?:how|why|what|who|where|when\s+will)\s+(?:can|could|do|does|did|would|is|are|was|the|should|will|am|i)\b",
    re.IGNORECASE,
)
HINGES = re.compile(
    r"\b(?:if|wish|wished|hope|hoping|would|could|should|unless|imagine|dream|dreamt|dreamed|said|says|say|told|"
    r"tells|think|thought|want|wants|"
    r"wanted|when|whenever|while|asked|asks|pretend|pretended|supposed|knows?|knew|how|might|may|whether|until|"
    r"before|after|heard|goes|not|"
    r"didn't|don't|never|nobody|no|like|who|which|that|where|what)\b",
    re.IGNORECASE,
)
PRONOUN = re.compile(
    r"\A(he|she|they|he's|she's|they're|they've|they'd|he'd|she'd|he'll|she'll|they'll|his|her|their|hers|theirs)\b",
    re.IGNORECASE,
)
THING = re.compile(
    r"\A(?:it|it's|it'd|it'll|its|that|that's|that'd|this|this's|these|those|them|him|one|another|both|"
    r"neither|either|none|each|some|others?|the\s+(?:other|same|latter|former|one|ones))\b",
    re.IGNORECASE,
)
THING_ALLOWED = re.compile(
    r"\A(?:it's|it\s+is|it\s+was|it's\s+been|it\s+has\s+been|this\s+is|this\s+was)\s+(?:been\s+|only\s+|"
    r"almost\s+|nearly\s+|already\s+)*"
    r"(?:my|our|the\s+first|a\s+year|a\s+week|a\s+month|\d+|two|three|four|five|six|seven|eight|nine|"
    r"ten)\b(?!\s*(?:fault|thing|way|own|bad|"
    r"am|pm|o'clock|one))"
    r"|\A(?:this|these|those|that|some|one|another|both|the\s+(?:other|same))\s+(?!is\b|was\b|one\b|of\b|ones\b|"
    r"too\b|also\b)[a-z]{3,}",
    re.IGNORECASE,
)
REFERRING = re.compile(r"\b(?:it|him|her|them|that|this|those|these|there|one|ones)\Z", re.IGNORECASE)
HALF_TOLD = re.compile(
    r"\b(?:would|could|should|wish|wished|want|wanted|tried|thought|hoped|supposed|used\s+to|going\s+to|if|might|may|"
    r"planned|think|guess|feel\s+like|suppose|hope|hoping|expected|expecting|believed|either|neither|not\s+only|"
    r"whether|know\s+(?:how|what|why|if)|said|says|told|tell|"
    r"the\s+more|as\s+soon|ever\s+since|every\s+time|whenever|even\s+when|used|except|enough|pretended|meant)\b",
    re.IGNORECASE,
)
SUBORDINATE = re.compile(
    r"\A(?:when|whenever|while|after|before|since|as|once|every\s+time|ever\s+since|even\s+though|although|though|"
    r"because|now\s+that|until|till|in\s+case|so\s+that|even\s+if)\b",
    re.IGNORECASE,
)
ENDS_OPEN = re.compile(
    r"\b(?:the|a|an|my|your|to|of|with|and|but|or|because|from|for|at|than|when|while|if|so|very|too|really|"
    r"just|like|i|we|he|"
    r"she|they|is|was|are|were|am|be|been|has|had|that|which|who|what|how|why|by|into|about|as|said|says|even|"
    r"not|never|"
    r"goes|told\s+me|such|every|his|her|their|our|n|w|where|whether|until|i'm|it's|he's|she's|\d+\s+and|until|"
    r"off\s+to|having)\Z",
    re.IGNORECASE,
)
QUOTED = re.compile(r"(?<!\w)['‘\"“][^'‘\"“”\n]*(?:\w['’]\w[^'‘\"“”\n]*)*['’\"”](?!\w)")
SPEECH = re.compile(
    r"[\"“”]|(?<!\w)['‘](?!(?:em|til|cause|cos|n|bout|round|twas|tis)\b)|\b(?:goes|says|said|like|quote|asks|"
    r"asked|replied)\s*[,:]|\bgoes\s+\w+\s+\w+",
    re.IGNORECASE,
)
LEADING = re.compile(
    r"(?:today|yesterday|tonight|tomorrow|recently|lately|now|sometimes|once|suddenly|eventually|finally|"
    r"currently|(?:last|this|next|every|one|"
    r"the\s+other)\s+(?:day|night|week|weekend|month|year|morning|evening|afternoon|summer|winter|spring|fall|"
    r"autumn|time|monday|tuesday|wednesday|"
    r"thursday|friday|saturday|sunday)|earlier\s+(?:today|this\s+\w+)|(?:a|an|two|three|four|five|six|few|"
    r"a\s+few|couple|a\s+couple|\d+|several)\s+"
    r"(?:of\s+)?(?:days?|weeks?|months?|years?|nights?|hours?)\s+(?:ago|back|later)|on\s+(?:my\s+way\s+\w+|"
    r"monday|tuesday|wednesday|thursday|friday|"
    r"saturday|sunday)|at\s+(?:school|work|home|night|first|lunch)|for\s+(?:the\s+first\s+time|once|years|weeks|"
    r"months)|in\s+(?:the\s+end|"
    r"school|class|college|\d{4})|after\s+(?:\w+\s+){1,4}?\w+,)\s*,?\s+",
    re.IGNORECASE,
)

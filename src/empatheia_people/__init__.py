"""Human evaluation and curation: studies, judging, subtitles made into dialogues."""

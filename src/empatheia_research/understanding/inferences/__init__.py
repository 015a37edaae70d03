"""Project: commonsense inferences behind one interface, from a model, a table, or a file.

``provider`` the interface and what combines providers; ``generation`` any encoder-decoder in COMET's prompt form;
``index`` and ``nearest`` look-up in ATOMIC; ``cache`` what was computed before; ``heads`` which text is asked about;
``turns`` the component for conversations.
"""

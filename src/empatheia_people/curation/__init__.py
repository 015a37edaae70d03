"""From raw subtitles or chats to emotional dialogues on a laptop or a cluster, after MEED2 (Xie and Pu 2021)."""

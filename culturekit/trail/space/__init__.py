"""Why a row of a cultural space is another than before: its stages walked back, and made again with one exchanged."""

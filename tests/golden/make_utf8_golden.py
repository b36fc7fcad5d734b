# SPDX-License-Identifier: Apache-2.0
"""Byte strings and what Python makes of them with errors="replace" (maximal subparts, as WHATWG).

    python make_utf8_golden.py utf8.json
"""

import json
import random
import sys

LEADS = [0x24, 0xC1, 0xC2, 0xDF, 0xE0, 0xE1, 0xED, 0xEF, 0xF0, 0xF1, 0xF4, 0xF5, 0xFF]
TRAILS = [0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0]


def byte_strings() -> list[bytes]:
    rnd = random.Random(17)
    strings = [b"", "a\u00e9\u4e00\U0001f525".encode(), b"\xed\xa0\x80", b"\xf4\x90\x80\x80"]
    strings += [bytes([lead, trail]) for lead in LEADS for trail in TRAILS]
    strings += [bytes([lead, a, b, 0x41]) for lead in LEADS[4:] for a in TRAILS for b in TRAILS[1:6:2]]
    for _ in range(300):
        strings.append(bytes(rnd.choice(LEADS + TRAILS * 2) for _ in range(rnd.randrange(1, 12))))
    for _ in range(100):
        text = "".join(
            chr(rnd.choice([0x41, 0xE9, 0x4E00, 0x1F525, 0x10FFFF, 0xFFFD])) for _ in range(5)
        ).encode()
        strings.append(text[: rnd.randrange(1, len(text))])
    return strings


def main() -> None:
    cases = [[data.hex(), data.decode("utf-8", errors="replace")] for data in byte_strings()]
    golden = {"magic": "brigade-utf8-golden", "version": 1, "cases": cases}
    with open(sys.argv[1], "w", encoding="utf-8") as out:
        json.dump(golden, out, ensure_ascii=True, separators=(",", ":"))
        out.write("\n")


if __name__ == "__main__":
    main()

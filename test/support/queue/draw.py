"""Draws a queue again, from the file that `stockade queue check` reads: python3 draw.py FILE

A second program for the same rules (docs/internals/draw.md), which shares no code with the first. It prints the numbers in the
drawn order, one on each line. It takes from the file only sale, seed, commitment, and the digest of each number, and ignores
the order of the lines. It ends with 1 if the seed does not belong to the commitment, if a number from 1 to n is not there
once, or if the hash of the entries or the order is not the one in the file.
"""

import hashlib
import hmac
import json
import struct
import sys


def entries_hash(sale, digests):
    """SHA-256 of the sale and all digests, in the order of their numbers."""
    whole = hashlib.sha256(f"stockade-draw 1 {sale}\n".encode())
    for number in sorted(digests):
        whole.update(f"{number} {digests[number] or '-'}\n".encode())
    return whole.digest()


def words(seed, entries):
    """Numbers below 2^32, eight from each block."""
    block = 0
    while True:
        yield from struct.unpack(">8I", hmac.digest(seed, entries + struct.pack(">I", block), "sha256"))
        block += 1


def drawn_order(seed, entries, count):
    """The numbers 1 to count, shuffled."""
    numbers = list(range(1, count + 1))
    random = words(seed, entries)
    for last in range(count - 1, 0, -1):
        choices = last + 1
        # A word in the incomplete last round of choices would favour the first of them.
        word = next(word for word in random if word // choices < 2**32 // choices)
        chosen = word % choices
        numbers[chosen], numbers[last] = numbers[last], numbers[chosen]
    return numbers


def main(file):
    with open(file, encoding="utf-8") as lines:
        header, *entries = (json.loads(line) for line in lines)
    seed = bytes.fromhex(header["seed"])
    if hashlib.sha256(seed).hexdigest() != header["commitment"]:
        sys.exit("the seed does not belong to the commitment")
    digests = {entry["number"]: entry["digest"] for entry in entries}
    if sorted(digests) != list(range(1, header["entries"] + 1)) or len(digests) != len(entries):
        sys.exit("a number is not there once")
    whole = entries_hash(header["sale"], digests)
    if whole.hex() != header["entriesHash"]:
        sys.exit("the hash of the entries is another one")
    order = drawn_order(seed, whole, len(digests))
    sys.stdout.writelines(f"{number}\n" for number in order)
    if [(rank, number) for rank, number in enumerate(order, 1)] != [(e["rank"], e["number"]) for e in entries]:
        sys.exit("the order is another one")


main(sys.argv[1])

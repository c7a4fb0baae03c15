"""Published test vectors, run through our own functions; and one golden vector recomputed step by step.

AES-256-CTR: NIST SP 800-38A, F.5.5. AES-256-CMAC: NIST SP 800-38B, examples D.3. HMAC-SHA-256: RFC 4231, test cases 1, 2 and 6.
"""

import hmac

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.cmac import CMAC

from holdfast.randomness import NoiseKey
from holdfast.randomness.streams import counter_blocks
from holdfast.randomness.vault import hmac_sha256, start_cmac, start_ctr, start_ecb

NIST_KEY = bytes.fromhex("603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4")
NIST_TEXT = bytes.fromhex(
    "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e5130c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710"
)
CTR_START = int("f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff", 16)
CTR_CIPHERTEXT = bytes.fromhex(
    "601ec313775789a5b7a7f504bbf3d228f443e3ca4d62b59aca84e990cacaf5c52b0930daa23de94ce87017ba2d84988ddfc9c58db67aada613c2dd08457941a6"
)
CMAC_TAGS = {
    0: "028962f61b7bf89efc6b551f4667d983",
    16: "28a7023f452e8f82bd4bf28d8c37c35c",
    40: "aaf3d8f1de5640c232f5b169b9c911e6",
    64: "e1992190549f6ed5696a2c056c315410",
}


@pytest.mark.parametrize("block", range(4))
def test_ctr_from_any_block(block):
    cipher = start_ctr(NIST_KEY, CTR_START, block)
    assert cipher.update(NIST_TEXT[16 * block :]) == CTR_CIPHERTEXT[16 * block :]


def test_counter_blocks_give_the_same_keystream():
    keystream = start_ecb(NIST_KEY).update(counter_blocks(CTR_START, np.arange(4, dtype=np.uint64)).tobytes())
    assert bytes(a ^ b for a, b in zip(keystream, NIST_TEXT, strict=True)) == CTR_CIPHERTEXT


@pytest.mark.parametrize(("length", "tag"), CMAC_TAGS.items())
def test_cmac(length, tag):
    mac = start_cmac(NIST_KEY)
    mac.update(NIST_TEXT[:length])
    assert mac.finalize().hex() == tag


@pytest.mark.parametrize(
    ("key", "message", "digest"),
    [
        (b"\x0b" * 20, b"Hi There", "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"),
        (b"Jefe", b"what do ya want for nothing?", "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"),
        (
            b"\xaa" * 131,
            b"Test Using Larger Than Block-Size Key - Hash Key First",
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
        ),
    ],
)
def test_hmac_sha256(key, message, digest):
    assert hmac_sha256(key, message).hex() == digest


def plain_words(*, seed_bytes: bytes, header: bytes, item: bytes) -> list[int]:
    """The first four words of a label of a test key, from the definition, with nothing of ours."""
    version = b"holdfast randomness, stream version 2: "
    seed_label = (b"\0\0\0\x10" + b"\0\0\0\0" + b"\0\0\0\1" + b"i").ljust(16, b"\0") + seed_bytes
    master = hmac.digest(b"holdfast test key: NOT PRIVATE", version + b"test key;" + seed_label, "sha256")
    mac = CMAC(algorithms.AES256(hmac.digest(master, version + b"label tags;", "sha256")))
    mac.update(header + item)
    cipher = Cipher(algorithms.AES256(hmac.digest(master, version + b"keystream;", "sha256")), modes.CTR(mac.finalize())).encryptor()
    block = cipher.update(bytes(16))
    return [int.from_bytes(block[i : i + 4], "little") for i in range(0, 16, 4)]


GOLDEN = [203638272, 3016768366, 3418772937, 625853852]


def test_golden_vector():
    header = (b"\0\0\0\x20" + b"\0\0\0\0" + b"\0\0\0\2" + b"s" + (6).to_bytes(8, "big") + b"golden" + b"i").ljust(32, b"\0")
    recomputed = plain_words(seed_bytes=(1).to_bytes(8, "big"), header=header, item=(7).to_bytes(8, "big"))
    assert NoiseKey.for_tests(1).stream("golden", 7).take(4).tolist() == GOLDEN == recomputed

"""A noise key put away for an interruption: encrypted under a secret that the user keeps elsewhere.

    sealed = version byte, 16 bytes of salt, 12 bytes of nonce, AES-256-GCM(master secret) under scrypt(secret, salt)

The version byte and whether the key is private are authenticated. A sealed key is as safe as the user's secret, no safer.
"""

from __future__ import annotations

import os

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

from holdfast.errors import InvalidParameter, KeyMisuse
from holdfast.randomness.vault import KEY_BYTES, STREAM_VERSION

VERSION = 1
SALT_BYTES, NONCE_BYTES, TAG_BYTES = 16, 12, 16
LEAST_SECRET_BYTES = 16


def seal(master: bytes, is_private: bool, secret: bytes) -> bytes:
    """The master secret of a key, encrypted under the user's secret."""
    salt, nonce = os.urandom(SALT_BYTES), os.urandom(NONCE_BYTES)
    return bytes([VERSION, is_private]) + salt + nonce + _cipher(secret, salt).encrypt(nonce, master, _header(is_private))


def unseal(sealed: bytes, secret: bytes) -> tuple[bytes, bool]:
    """(master secret, whether it is private), or KeyMisuse where the secret is another or the sealed key was changed."""
    if len(sealed) != 2 + SALT_BYTES + NONCE_BYTES + KEY_BYTES + TAG_BYTES or sealed[0] != VERSION or sealed[1] > 1:
        raise KeyMisuse("The sealed key is damaged or of another version. It cannot be opened.")
    is_private = bool(sealed[1])
    salt, rest = sealed[2 : 2 + SALT_BYTES], sealed[2 + SALT_BYTES :]
    try:
        return _cipher(secret, salt).decrypt(rest[:NONCE_BYTES], rest[NONCE_BYTES:], _header(is_private)), is_private
    except InvalidTag:
        raise KeyMisuse("The sealed key cannot be opened with this secret. Give the secret it was sealed with.") from None


def _header(is_private: bool) -> bytes:
    return f"holdfast sealed key {VERSION}, stream version {STREAM_VERSION}, private {int(is_private)}".encode("ascii")


def _cipher(secret: bytes, salt: bytes) -> AESGCM:
    if not isinstance(secret, bytes) or len(secret) < LEAST_SECRET_BYTES:
        raise InvalidParameter(
            f"The secret that seals noise keys needs at least {LEAST_SECRET_BYTES} bytes. Make one: openssl rand -hex 32."
        )
    return AESGCM(Scrypt(salt=salt, length=32, n=2**14, r=8, p=1).derive(secret))

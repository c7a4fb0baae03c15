"""Signatures on cards: Ed25519, so that a reader can tell whose release it is."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key, load_pem_public_key

from holdfast.card.card import Card, Signature, canonical_bytes
from holdfast.card.problems import problems
from holdfast.errors import InvalidParameter, VerificationFailed
from holdfast.publication.given_files import Unfit, read_json_text
from holdfast.randomness.keys import read_key_file

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes


def load_signing_key(path: Path) -> Ed25519PrivateKey:
    """A private key from a PEM file without password (openssl genpkey -algorithm ed25519); refused where others may read the file."""
    key: PrivateKeyTypes | None = None
    with contextlib.suppress(OSError, ValueError, TypeError):  # the cause may quote the key's content: it is not handed on
        key = load_pem_private_key(read_key_file(path), password=None)
    if not isinstance(key, Ed25519PrivateKey):
        raise InvalidParameter(
            f"The signing key {path.name!r} is not a readable Ed25519 private key in PEM. Make one: openssl genpkey -algorithm ed25519."
        )
    return key


def load_public_key(path: Path) -> str:
    """A public key from a PEM file, as the hexadecimal digits a card shows."""
    content, key = _read_public(path), None
    with contextlib.suppress(ValueError):
        key = load_pem_public_key(content)
    if not isinstance(key, Ed25519PublicKey):
        raise InvalidParameter(
            f"The signer's key {path.name!r} is not a readable Ed25519 public key in PEM. Take the file that the office publishes."
        )
    return key.public_bytes(Encoding.Raw, PublicFormat.Raw).hex()


def _read_public(path: Path) -> bytes:
    """The content of a file that should hold a public key. Of a private one nothing is parsed or shown."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise InvalidParameter(f"The signer's key {path.name!r} does not exist. Check its path.") from None
    except OSError:
        raise InvalidParameter(f"The signer's key {path.name!r} cannot be read. Check its path and permissions.") from None
    if b"-----BEGIN" in content and b"PRIVATE KEY-----" in content:
        raise InvalidParameter(
            f"The signer's key {path.name!r} is a private key. Make the public one: openssl pkey -in priv.pem -pubout -out pub.pem."
        )
    return content


def public_key_of(key: Ed25519PrivateKey) -> str:
    """The public key that belongs to a private one, as the hexadecimal digits a card shows."""
    return key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw).hex()


def sign_card(card: Card, key: Ed25519PrivateKey) -> Card:
    """The card with its signature."""
    signature = Signature(algorithm="Ed25519", public_key=public_key_of(key), value=key.sign(canonical_bytes(card)).hex())
    return card.model_copy(update={"signature": signature})


def signature_holds(card: Card) -> bool:
    """Whether the card's signature is that of its own content by the key it names."""
    assert card.signature is not None
    try:
        key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(card.signature.public_key))
        key.verify(bytes.fromhex(card.signature.value), canonical_bytes(card))
    except (InvalidSignature, ValueError):
        return False
    return True


def signature_problems(card: Card) -> Iterator[str]:
    """What is wrong with the card's signature, whoever made it."""
    if card.signature is None:
        if card.release.signer is not None:
            yield "the card is not signed, although it names a signer"
    elif card.signature.public_key != card.release.signer:
        yield "the signature is by another key than the signer that the card names"
    elif not signature_holds(card):
        yield "the signature does not fit the card"


def check_signed_by(card: Card, signer: str | os.PathLike[str] | None) -> None:
    """Raise VerificationFailed unless the public key in the file `signer`, if one is named, signed the card. Asked of a card whose own
    signature holds: it is as its signer made it, but that may be someone else.
    """
    if signer is None:
        return
    expected = load_public_key(Path(signer))
    if card.signature is None:
        raise VerificationFailed(
            "The card is not signed, and --signer asks for a signature. Ask the publisher for a signed folder: nothing shows who made "
            "this one."
        )
    if card.signature.public_key != expected:
        raise VerificationFailed(
            f"The card is signed, but not by the key that you named ({Path(signer).name!r}). Check that this is the key the office "
            "publishes; if it is, do not use the folder."
        )


def check_signer(file: Path, signer: Path) -> None:
    """Raise VerificationFailed unless this file is a card that `signer` signed. The other files of its folder are not looked at."""
    try:
        text = read_json_text(file)
    except Unfit as unfit:
        raise _unchecked(file, f"it {unfit}") from None
    if problems(text):
        raise _unchecked(file, "it is not a card of this version of Holdfast")
    card = Card.from_json(text)
    for problem in signature_problems(card):
        raise _unchecked(file, problem)
    check_signed_by(card, signer)


def _unchecked(file: Path, why: str) -> VerificationFailed:
    return VerificationFailed(f"The signature on {file.name!r} cannot be checked: {why}. Do not use the card; ask its publisher.")

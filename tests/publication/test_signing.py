"""Signatures: made, checked, and refused wherever a card or a key is another one."""

from __future__ import annotations

from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, NoEncryption, PrivateFormat, PublicFormat

from holdfast.card.card import Card
from holdfast.card.problems import problems
from holdfast.errors import InvalidParameter, KeyMisuse
from holdfast.publication.signing import load_public_key, load_signing_key, sign_card, signature_holds
from tests.report.cards import CARD, card_values

KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))


def private_pem(key: Ed25519PrivateKey | X25519PrivateKey, password: bytes | None = None) -> bytes:
    lock = NoEncryption() if password is None else BestAvailableEncryption(password)
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, lock)


def test_a_signed_card_holds_and_any_other_card_does_not() -> None:
    made = sign_card(Card.model_validate(CARD), KEY)
    assert signature_holds(made)
    assert signature_holds(Card.from_json(made.to_json()))
    assert made.signature is not None
    other = Card.model_validate(card_values(release__id="another")).model_copy(update={"signature": made.signature})
    assert not signature_holds(other)
    wrong = made.signature.model_copy(update={"value": "00" * 64})
    assert not signature_holds(made.model_copy(update={"signature": wrong}))
    no_point = made.signature.model_copy(update={"public_key": "ff" * 32})
    assert not signature_holds(made.model_copy(update={"signature": no_point}))


def test_digits_that_reading_would_round_away_are_no_card() -> None:
    """A reader would see them, and the signature would not."""
    made = sign_card(
        Card.model_validate(card_values(expected_error__cell_standard_deviation={"smallest": 1.25, "median": 7.25, "largest": 9.0})), KEY
    )
    text = made.to_json()
    assert signature_holds(Card.from_json(text))
    changed = text.replace("7.25", "7.2500004")
    assert changed != text
    assert problems(changed) == ["The card: found a number of more digits than cards have, expected at most 6 significant ones."]


def test_the_same_card_and_key_give_the_same_signature() -> None:
    assert sign_card(Card.model_validate(CARD), KEY) == sign_card(Card.model_validate(CARD), KEY)


def test_keys_are_read_from_pem(tmp_path: Path) -> None:
    (tmp_path / "key.pem").write_bytes(private_pem(KEY))
    (tmp_path / "key.pem").chmod(0o644)
    with pytest.raises(KeyMisuse, match="can be read or changed by others"):
        load_signing_key(tmp_path / "key.pem")
    (tmp_path / "key.pem").chmod(0o600)
    public = KEY.public_key()
    (tmp_path / "public.pem").write_bytes(public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    assert load_signing_key(tmp_path / "key.pem").public_key() == public
    assert load_public_key(tmp_path / "public.pem") == public.public_bytes(Encoding.Raw, PublicFormat.Raw).hex()


@pytest.mark.parametrize(
    "content",
    [b"", b"SECRETWORD", private_pem(X25519PrivateKey.generate()), private_pem(KEY, b"password"), private_pem(KEY)[:60]],
    ids=["empty", "no key", "another kind", "with a password", "cut off"],
)
def test_what_is_no_signing_key_is_refused_and_not_shown(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "key.pem").write_bytes(content)
    (tmp_path / "key.pem").chmod(0o600)
    with pytest.raises(InvalidParameter, match=r"'key\.pem' is not a readable Ed25519 private key.*openssl genpkey") as caught:
        load_signing_key(tmp_path / "key.pem")
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert "SECRETWORD" not in str(caught.value)
    why = (
        r"'key\.pem' is a private key\. Make the public one: openssl pkey" if b"PRIVATE" in content else "not a readable Ed25519 public key"
    )
    with pytest.raises(InvalidParameter, match=why):
        load_public_key(tmp_path / "key.pem")


def test_a_missing_key_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidParameter, match=r"is not a readable"):
        load_signing_key(tmp_path / "none.pem")
    with pytest.raises(InvalidParameter, match=r"'none\.pem' does not exist\. Check its path"):
        load_public_key(tmp_path / "none.pem")
    with pytest.raises(InvalidParameter, match=r"cannot be read\. Check its path and permissions"):
        load_public_key(tmp_path)

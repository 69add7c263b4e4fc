"""In which order messages reach the one who decides."""

from datetime import UTC, datetime

from kfp_placement_controller.loops.inbox import Inbox

NOW = datetime(2026, 11, 24, tzinfo=UTC)


def taken(inbox: Inbox[list[str]]) -> list[str]:
    """What all messages have told, in order."""
    names: list[str] = []
    while (message := inbox.next_message()) is not None:
        message(names, NOW)
    return names


def test_messages_come_in_the_order_in_which_they_were_put():
    inbox: Inbox[list[str]] = Inbox()
    for name in ("one", "two"):
        inbox.put(lambda names, _now, name=name: names.append(name))  # type: ignore[misc]
    assert taken(inbox) == ["one", "two"]
    assert inbox.next_message(wait_seconds=0.01) is None


def test_a_renewed_lease_does_not_wait_behind_a_backlog():
    inbox: Inbox[list[str]] = Inbox()
    inbox.put(lambda names, _now: names.append("run"))
    for name in ("lease", "lease again"):
        inbox.put_first(lambda names, _now, name=name: names.append(name))  # type: ignore[misc]
    assert taken(inbox) == ["lease", "lease again", "run"]


def test_a_message_that_goes_first_wakes_who_waits_for_one():
    inbox: Inbox[list[str]] = Inbox()
    inbox.put_first(lambda names, _now: names.append("lease"))
    assert inbox.next_message(wait_seconds=60.0) is not None
    assert inbox.next_message(wait_seconds=60.0) is not None
    assert inbox.next_message() is None

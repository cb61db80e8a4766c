"""A policy for each suite: where the values of every tool that changes something may come from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from lutum_py.flow import USER, Policy, output


def workspace(policy: Policy) -> None:
    """Mails, calendar and files of an office."""
    mails = [f"get_{kind}_emails" for kind in ("unread", "sent", "received", "draft")]
    mails.append("search_emails")
    events = ("search_calendar_events", "get_day_calendar_events")
    found = ("search_files_by_filename", "search_files", "list_files")
    people = ("search_contacts_by_name", "search_contacts_by_email")
    policy.trust(*people, "get_current_day")
    contacts = output(*people, path="[].email")
    guests = output(*events, path="[].participants[]", named="title")
    senders = output(*mails, path="[].sender", named="subject")
    sharers = output(*found, path="[].shared_with{}", named="filename")
    event = output(*events, path="[].id_", named="title")
    file = output(*found, path="[].id_", named="filename")
    who = (USER, contacts, guests, senders)
    policy.fill("send_email", ["recipients", "cc", "bcc"], *who, sharers)
    policy.fill("send_email", "attachments[].file_id", USER, file)
    policy.text("send_email", ["subject", "body"], USER)
    policy.fill("delete_email", "email_id", USER, output(*mails, path="[].id_", named="subject"))
    policy.fill("create_calendar_event", "participants", *who)
    policy.text("create_calendar_event", ["title", "description", "location"], USER)
    for tool in ("cancel_calendar_event", "reschedule_calendar_event"):
        policy.fill(tool, "event_id", USER, event)
    policy.fill("add_calendar_event_participants", "event_id", USER, event)
    policy.fill("add_calendar_event_participants", "participants", *who)
    policy.fill("append_to_file", "file_id", USER, file)
    policy.text("append_to_file", "content", USER, run=0)  # it stays with the user
    policy.fill("create_file", "filename", USER)
    policy.text("create_file", "content", USER, run=0)
    policy.fill("delete_file", "file_id")
    policy.fill("share_file", "file_id", USER, file, output("create_file", path="id_"))
    policy.fill("share_file", "email", USER, contacts)


def travel(policy: Policy) -> None:
    """Hotels, restaurants and cars; what people write in reviews is not to be trusted."""
    policy.trust("get_hotels_address", "get_restaurants_address", "get_car_rental_address")
    policy.trust("get_user_information", "get_flight_information")
    policy.private("get_user_information")
    policy.fill("reserve_hotel", "hotel", USER)
    policy.fill("reserve_restaurant", "restaurant", USER)
    policy.fill("reserve_car_rental", "company", USER)
    policy.fill("send_email", ["recipients", "cc", "bcc", "attachments"], USER)
    policy.sink("send_email", "recipients", "cc", "bcc")
    policy.text("send_email", ["subject", "body"], USER)
    policy.fill("create_calendar_event", "participants", USER)
    policy.text("create_calendar_event", ["title", "description", "location"], USER)
    policy.fill("cancel_calendar_event", "event_id", USER)


def banking(policy: Policy) -> None:
    """Payments and the user's account."""
    policy.trust("get_iban", "get_balance", "get_user_info")
    # Whom the user has paid before: anybody can be a sender, for the price of a cent.
    paid_before = output("get_most_recent_transactions", path="[].recipient")
    policy.fill("send_money", "recipient", USER, paid_before)
    policy.text("send_money", "subject", USER)
    policy.fill("schedule_transaction", "recipient", USER)
    policy.text("schedule_transaction", "subject", USER)
    standing = output("get_scheduled_transactions", path="[].id")
    policy.fill("update_scheduled_transaction", "id", USER, standing)
    policy.fill("update_scheduled_transaction", "recipient", USER)
    policy.text("update_scheduled_transaction", "subject", USER)
    policy.fill("update_password", "password", USER)
    policy.fill("update_user_info", ["first_name", "last_name", "street", "city"], USER)


def slack(policy: Policy) -> None:
    """Channels, direct messages and web pages."""
    policy.trust("get_channels", "get_users_in_channel")
    channels = output("get_channels", path="[]")
    users = output("get_users_in_channel", path="[]")
    writers = output("read_channel_messages", path="[].sender")
    # What somebody wrote whom the user named; nobody else can write under that name.
    messages = ("read_channel_messages", "read_inbox")
    posted = output(*messages, path="[].body", named="sender", part=True)
    policy.fill("send_direct_message", "recipient", USER, users, writers)
    policy.text("send_direct_message", "body", USER)
    policy.fill("send_channel_message", "channel", USER, channels)
    policy.text("send_channel_message", "body", USER)
    policy.fill("add_user_to_channel", "user", USER, users, posted)
    policy.fill("add_user_to_channel", "channel", USER, channels, posted)
    policy.fill("invite_user_to_slack", "user", USER, posted)
    pages = output("get_webpage", part=True)
    policy.fill("invite_user_to_slack", "user_email", USER, pages)
    policy.fill("remove_user_from_slack", "user", USER)
    policy.fill("post_webpage", "url", USER)
    policy.text("post_webpage", "content", USER)
    policy.fill("get_webpage", "url", USER, posted)


POLICIES: Final[dict[str, Callable[[Any], None]]] = {
    "workspace": workspace,
    "travel": travel,
    "banking": banking,
    "slack": slack,
}

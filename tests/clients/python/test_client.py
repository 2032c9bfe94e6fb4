"""The Python client against a real Postgres and a real daemon: the harness sets PG* and POOLER_PORT."""

import asyncio
import json
import os
import threading
import unittest
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from unittest import mock

import psycopg
from psycopg.rows import dict_row

import outboxd_client as outbox
from outboxd_client import _json, _sync, aio

IN_AN_HOUR = datetime.now(timezone.utc) + timedelta(hours=1)


def connect(**more):
    return psycopg.connect(**{"autocommit": True, **more})


class Calls(unittest.TestCase):
    def setUp(self):
        self.db = connect()
        self.addCleanup(self.db.close)
        self.id = f"py-{self.id().rsplit('.', 1)[-1]}"  # one id per test

    def test_a_call_joins_the_callers_transaction(self):
        with self.assertRaises(ZeroDivisionError), self.db.transaction():
            outbox.enqueue(self.db, "create_ticket", {"title": "no"}, operation_id=self.id)
            1 / 0
        self.assertIsNone(outbox.get(self.db, self.id))

        with connect(autocommit=False) as db:
            receipt = outbox.enqueue(db, "create_ticket", {"title": "yes"}, operation_id=self.id)
            self.assertEqual((receipt.status, receipt.replayed, receipt.final), ("pending", False, False))
            self.assertIsNone(outbox.get(self.db, self.id), "another session sees nothing before the commit")
        done = outbox.wait(self.db, self.id, 60)
        self.assertEqual((done.status, done.final, done.tool, done.attempts), ("succeeded", True, "create_ticket", 1))
        self.assertRegex(done.result["id"], "^T-")
        self.assertIsNotNone(done.started_at.tzinfo)

    def test_a_cursor_means_its_connection_and_no_setting_of_the_caller_matters(self):
        with connect(autocommit=False, row_factory=dict_row) as db:
            db.execute("SET DateStyle = 'SQL, DMY'")
            psycopg.types.json.set_json_loads(lambda _: "the caller's own", db)
            with db.cursor(binary=True) as cursor:
                receipt = outbox.enqueue(cursor, "create_ticket", {"title": self.id}, operation_id=self.id)
                self.assertFalse(receipt.replayed)
                self.assertEqual(outbox.get(cursor, self.id).operation_id, self.id)
            db.rollback()
        self.assertIsNone(outbox.get(self.db, self.id))

    def test_the_same_call_in_one_run_is_one_operation(self):
        first = outbox.enqueue(self.db, "create_ticket", {"title": "disk", "n": 200}, run_id=self.id)
        again = outbox.enqueue(self.db, "create_ticket", {"n": Decimal("200.0"), "title": " disk "}, run_id=self.id)
        self.assertEqual((first.operation_id, first.replayed), (again.operation_id, False))
        self.assertIs(again.replayed, True)
        self.assertIn("Nothing was executed again", again.message)
        self.assertEqual(again.for_model()["message"], again.message)
        second = outbox.enqueue(self.db, "create_ticket", {"title": "disk", "n": 200}, run_id=self.id, occurrence=2)
        monday = outbox.enqueue(self.db, "create_ticket", {"title": "disk", "n": 200}, run_id=self.id + "-tuesday")
        self.assertEqual(len({first.operation_id, second.operation_id, monday.operation_id}), 3)
        self.assertEqual(outbox.wait(self.db, first.operation_id, 60).status, "succeeded")
        told = outbox.enqueue(self.db, "create_ticket", {"title": "disk", "n": 200}, run_id=self.id)
        self.assertEqual(told.status, "succeeded")
        self.assertRegex(told.for_model()["result"]["id"], "^T-")

    def test_the_run_comes_from_the_context(self):
        with outbox.run(self.id):
            self.assertEqual(outbox.current_run(), self.id)
            inner = outbox.enqueue(self.db, "create_ticket", {"title": "x"})
            with outbox.run(self.id + "-other"):
                other = outbox.enqueue(self.db, "create_ticket", {"title": "x"})
        explicit = outbox.enqueue(self.db, "create_ticket", {"title": "x"}, run_id=self.id)
        self.assertEqual(inner.operation_id, explicit.operation_id)
        self.assertNotEqual(inner.operation_id, other.operation_id)
        self.assertIsNone(outbox.current_run())
        with self.assertRaises(ValueError), outbox.run(""):
            pass

    def test_failed_means_no_effect_and_may_be_armed_again(self):
        call = dict(operation_id="py-refused", run_id=None)
        outbox.enqueue(self.db, "create_ticket", {"title": "rude"}, **call)
        failed = outbox.wait(self.db, "py-refused", 60)
        self.assertEqual((failed.status, failed.error["code"]), ("failed", "rude_title"))
        told = outbox.enqueue(self.db, "create_ticket", {"title": "rude"}, **call)
        self.assertEqual((told.replayed, told.for_model()["error"]["code"]), (True, "rude_title"))
        armed = outbox.enqueue(self.db, "create_ticket", {"title": "rude"}, retry_failed=True, **call)
        self.assertEqual((armed.replayed, armed.status), (False, "pending"))
        self.assertEqual(outbox.wait(self.db, "py-refused", 60).status, "succeeded")

    def test_many_are_all_or_none_in_the_order_of_the_request(self):
        Request = outbox.Request
        with outbox.run(self.id):
            receipts = outbox.enqueue_many(self.db, [
                Request("create_ticket", {"title": "b"}),
                Request("create_ticket", {"title": "a"}, run_at=IN_AN_HOUR, labels={"team": "x"}, priority=-3),
                Request("create_ticket", {"title": "b"}),
            ])
        self.assertEqual([r.replayed for r in receipts], [False, False, True])
        self.assertEqual([r.status for r in receipts][1], "scheduled")
        self.assertEqual(receipts[0].operation_id, receipts[2].operation_id)
        self.assertEqual(outbox.enqueue_many(self.db, []), [])
        with self.assertRaises(outbox.BadRequest) as caught:
            outbox.enqueue_many(self.db, [Request("create_ticket", operation_id=self.id), Request("create_ticket")])
        self.assertIn("requests[1]", caught.exception.detail)
        self.assertIsNone(outbox.get(self.db, self.id))

    def test_what_the_outbox_refuses_has_a_class_a_detail_and_a_hint(self):
        def refuse(kind, *args, **more):
            with self.assertRaises(kind) as caught:
                outbox.enqueue(self.db, *args, **more)
            self.assertEqual(caught.exception.sqlstate, caught.exception.__cause__.diag.sqlstate)
            self.assertTrue(caught.exception.detail and caught.exception.hint)
            self.assertIsInstance(caught.exception, psycopg.DatabaseError)
            return caught.exception

        self.assertIn("Neither", refuse(outbox.BadRequest, "create_ticket", {"title": "x"}).detail)
        refuse(outbox.BadRequest, "create_ticket", {}, operation_id=self.id, priority=500)
        self.assertIn("create_ticket", refuse(outbox.UnknownTool, "create_tickets", {}, operation_id=self.id).hint)
        refuse(outbox.TooLarge, "create_ticket", {"title": "x" * 1_100_000}, operation_id=self.id)
        outbox.enqueue(self.db, "create_ticket", {"title": "one"}, operation_id=self.id)
        refuse(outbox.IdConflict, "create_ticket", {"title": "two"}, operation_id=self.id)
        with self.assertRaises(psycopg.errors.UndefinedTable):
            outbox.retry_transaction(self.db, lambda db: db.execute("SELECT FROM nowhere"))

    def test_a_savepoint_keeps_the_transaction_after_a_refusal(self):
        with connect(autocommit=False) as db:
            with self.assertRaises(outbox.UnknownTool), db.transaction():
                outbox.enqueue(db, "no_such_tool", {}, operation_id=self.id)
            outbox.enqueue(db, "create_ticket", {"title": "x"}, operation_id=self.id)
        self.assertIsNotNone(outbox.get(self.db, self.id))

    def test_cancel(self):
        outbox.enqueue(self.db, "create_ticket", {"title": "x"}, operation_id=self.id, run_at=IN_AN_HOUR)
        self.assertEqual(outbox.cancel(self.db, self.id, "no longer"), "cancelled")
        self.assertEqual(outbox.cancel(self.db, self.id), "already_cancelled")
        self.assertEqual(outbox.cancel(self.db, "py-nobody"), "not_found")
        self.assertEqual(outbox.wait(self.db, self.id).status, "cancelled")

    def test_compensate(self):
        call = ("create_ticket", {"title": "x"})
        outbox.enqueue(self.db, *call, operation_id=self.id)
        done = outbox.wait(self.db, self.id, 60)
        with self.db.transaction():
            undo = outbox.compensate(self.db, self.id, "close", {"note": "py"}, reason="a mistake")
        self.assertEqual((undo.operation_id, undo.replayed, undo.status), (f"{self.id}:compensate:close", False, "pending"))
        closed = outbox.wait(self.db, undo.operation_id, 60)
        self.assertEqual((closed.status, closed.result, closed.compensates), ("succeeded", {"state": "closed"}, self.id))
        again = outbox.compensate(self.db, self.id, arguments={"note": "py"})  # the only one needs no name
        self.assertEqual((again.operation_id, again.replayed, again.result), (undo.operation_id, True, closed.result))
        self.assertEqual(outbox.get(self.db, self.id).compensated_by, undo.operation_id)
        replay = outbox.enqueue(self.db, *call, operation_id=self.id)
        self.assertEqual((replay.replayed, replay.result), (True, done.result))
        self.assertIn("then undone", replay.message)
        with self.assertRaises(outbox.IdConflict):
            outbox.compensate(self.db, self.id, "close", {"note": "another"})

    def test_nothing_to_compensate(self):
        outbox.enqueue(self.db, "create_ticket", {"title": "x"}, operation_id=self.id, run_at=IN_AN_HOUR)
        instead = outbox.compensate(self.db, self.id, "close")
        self.assertEqual((instead.operation_id, instead.status, instead.replayed), (self.id, "cancelled", False))
        nothing = outbox.compensate(self.db, self.id, "close")
        self.assertEqual((nothing.operation_id, nothing.status, nothing.replayed), (self.id, "cancelled", True))
        self.assertIn("nothing to compensate", nothing.message)
        self.assertIsNone(outbox.get(self.db, f"{self.id}:compensate:close"))

    def test_a_compensation_that_is_not_there(self):
        outbox.enqueue(self.db, "create_ticket", {"title": "x"}, operation_id=self.id)
        for original, name, message, hint in [
            (self.id, "clsoe", 'tool "create_ticket" has no compensation "clsoe"', 'Did you mean "close"'),
            ("py-nobody", "close", 'there is no operation "py-nobody"', "operation_id that enqueue returned"),
        ]:
            with self.subTest(name), self.assertRaises(outbox.UnknownTool) as refused:
                outbox.compensate(self.db, original, name)
            self.assertIn(message, str(refused.exception))
            self.assertTrue(refused.exception.detail)
            self.assertIn(hint, refused.exception.hint)

    def test_what_is_not_json_is_refused_with_its_place_before_anything_is_sent(self):
        for value, kind, place in [
            ({"a": [1, {"when": datetime.now(timezone.utc)}]}, TypeError, "arguments.a[1].when is a datetime"),
            ({"a": float("nan")}, ValueError, "arguments.a is nan"),
            ({"a": Decimal("Infinity")}, ValueError, "arguments.a"),
            ({"a": {1}}, TypeError, "arguments.a is a set"),
            ({1: "a"}, TypeError, "the key 1"),
            ({"a": "x\0y"}, ValueError, "NUL"),
            ({"a": "\ud800"}, ValueError, "surrogate"),
            (["a"], TypeError, "arguments is a list"),
        ]:
            with self.subTest(value), self.assertRaises(kind) as caught, self.db.transaction():
                outbox.enqueue(self.db, "create_ticket", value, operation_id=self.id)
            self.assertIn(place, str(caught.exception))
        with self.assertRaises(ValueError):
            outbox.enqueue(self.db, "create_ticket", {}, operation_id=self.id, run_at=datetime(2030, 1, 1))

    def test_json_keeps_every_digit_and_character(self):
        value = {"money": Decimal("1234567890.123456789012345678"), "big": 2**70, "text": 'a"\\\n\u2028é😀', "n": [None, True, 0.1]}
        back = json.loads(_json.encode(value), parse_float=Decimal)
        self.assertEqual(back["money"], value["money"])
        self.assertEqual((back["big"], back["text"]), (value["big"], value["text"]))
        stored = self.db.execute("SELECT (%s::jsonb -> 'money')::text", [_json.encode(value)]).fetchone()[0]
        self.assertEqual(stored, "1234567890.123456789012345678")


class Waiting(unittest.TestCase):
    def setUp(self):
        self.db = connect()
        self.addCleanup(self.db.close)
        self.id = f"py-{self.id().rsplit('.', 1)[-1]}"

    def test_running_out_of_time_raises_nothing(self):
        outbox.enqueue(self.db, "create_ticket", {"title": "x"}, operation_id=self.id, run_at=IN_AN_HOUR)
        seen = outbox.wait(self.db, self.id, 0.3)
        self.assertEqual((seen.status, seen.final), ("scheduled", False))
        self.assertEqual(outbox.wait(self.db, self.id, 0).status, "scheduled")
        self.assertIsNone(outbox.wait(self.db, "py-nobody", 0.1))

    def test_waiting_inside_the_transaction_that_enqueued_is_an_error_that_says_so(self):
        with connect(autocommit=False) as db:
            outbox.enqueue(db, "create_ticket", {"title": "x"}, operation_id=self.id)
            with self.assertRaisesRegex(outbox.InTransaction, "Commit first"):
                outbox.wait(db, self.id, 60)
            db.commit()
            self.assertEqual(outbox.wait(db, self.id, 60).status, "succeeded")
            self.assertEqual(db.info.transaction_status.name, "IDLE")

    def test_it_is_woken_by_listen_and_leaves_the_session_as_it_was(self):
        slow = lambda db, _, hints: real(db, 60, hints)  # only a notification ends such a sleep early
        real = _sync._sleep
        outbox.enqueue(self.db, "create_ticket", {"title": "x"}, operation_id=self.id,
                       run_at=datetime.now(timezone.utc) + timedelta(seconds=1))
        with mock.patch.object(_sync, "_sleep", slow):
            seen = outbox.wait(self.db, self.id, 50)
        self.assertEqual(seen.status, "succeeded")
        self.assertLess((datetime.now(timezone.utc) - seen.finished_at).total_seconds(), 40)
        self.assertEqual(self.db.execute("SELECT * FROM pg_listening_channels()").fetchall(), [])

    def test_a_caller_who_listens_keeps_listening(self):
        heard = []
        self.db.add_notify_handler(lambda note: heard.append(note.payload))
        self.db.execute("LISTEN outbox_done")
        outbox.enqueue(self.db, "create_ticket", {"title": "x"}, operation_id=self.id)
        outbox.wait(self.db, self.id, 60)
        self.assertEqual(self.db.execute("SELECT * FROM pg_listening_channels()").fetchall(), [("outbox_done",)])

    def test_behind_a_pooler_it_polls(self):
        with connect(port=os.environ["POOLER_PORT"]) as db:
            for i in range(12):  # more often than psycopg's prepare_threshold
                outbox.enqueue(db, "create_ticket", {"title": "x"}, operation_id=self.id)
            self.assertEqual(outbox.wait(db, self.id, 60, poll=0.2).status, "succeeded")
            self.assertEqual(db.execute("SELECT * FROM pg_listening_channels()").fetchall(), [])

    def test_a_lost_connection_is_an_error(self):
        with connect() as other:
            pid = self.db.info.backend_pid
            timer = threading.Timer(0.3, lambda: other.execute("SELECT pg_terminate_backend(%s)", [pid]))
            timer.start()
            self.addCleanup(timer.join)
            with self.assertRaises(psycopg.OperationalError):
                outbox.wait(self.db, "py-nobody", 50)


class Retrying(unittest.TestCase):
    def setUp(self):
        self.db = connect()
        self.addCleanup(self.db.close)

    def test_a_serialization_failure_and_a_deadlock_are_tried_again(self):
        for state in ("40001", "40P01"):
            tries = []

            def work(db):
                tries.append(1)
                receipt = outbox.enqueue(db, "create_ticket", {"title": state}, operation_id=f"py-retry-{state}")
                if len(tries) < 3:
                    db.execute(f"DO $$ BEGIN RAISE SQLSTATE '{state}'; END $$")
                return receipt

            self.assertFalse(outbox.retry_transaction(self.db, work).replayed)
            self.assertEqual(len(tries), 3)

    def test_it_gives_up_and_refuses_an_open_transaction(self):
        work = lambda db: db.execute("DO $$ BEGIN RAISE SQLSTATE '40001'; END $$")
        with self.assertRaises(psycopg.errors.SerializationFailure):
            outbox.retry_transaction(self.db, work, attempts=2)
        with self.db.transaction(), self.assertRaises(outbox.InTransaction):
            outbox.retry_transaction(self.db, work)


class Actions(unittest.TestCase):
    def setUp(self):
        self.db = connect()
        self.addCleanup(self.db.close)
        self.id = f"py-{self.id().rsplit('.', 1)[-1]}"

    def test_a_signature_becomes_a_call(self):
        @outbox.action
        def create_ticket(title: str, priority: int = 3, note: str | None = None):
            """Open a ticket in the help desk."""

        self.assertEqual(create_ticket.__doc__, "Open a ticket in the help desk.")
        self.assertEqual(create_ticket.arguments("x"), {"title": "x", "priority": 3})
        self.assertEqual(create_ticket.arguments(note=None, title="x"), create_ticket.arguments("x", 3))
        with outbox.run(self.id):
            first = create_ticket(self.db, "disk full")
            again = create_ticket(self.db, priority=3, title="disk full")
            second = create_ticket.options(occurrence=2)(self.db, "disk full")
        self.assertEqual((first.operation_id, again.replayed), (again.operation_id, True))
        self.assertNotEqual(first.operation_id, second.operation_id)
        self.assertEqual(create_ticket.options(run_id=self.id)(self.db, "disk full").replayed, True)
        with self.assertRaises(outbox.BadRequest):
            create_ticket(self.db, "no run")
        with self.assertRaises(TypeError):
            create_ticket(self.db, tittle="misspelt")
        with self.assertRaises(TypeError):
            create_ticket.options(runid="misspelt")

    def test_the_tool_may_have_another_name_and_options(self):
        @outbox.action("create_ticket", run_at=IN_AN_HOUR)
        def later(title: str, **more: str): ...

        receipt = later.options(operation_id=self.id)(self.db, "x", team="y")
        self.assertEqual(receipt.status, "scheduled")
        self.assertEqual(later.arguments("x", team="y"), {"title": "x", "team": "y"})
        many = outbox.enqueue_many(self.db, [later.options(run_id=self.id).request("z")])
        self.assertEqual(many[0].status, "scheduled")

    def test_a_body_that_would_never_run_is_refused(self):
        def sends(title):
            return print(title)

        def raises(title):
            raise NotImplementedError

        for function in (sends, raises):
            with self.assertRaisesRegex(TypeError, "never be run"):
                outbox.action(function)
        with self.assertRaisesRegex(TypeError, "names"):
            outbox.action(lambda *parts: None)


class Async(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        self.db = await psycopg.AsyncConnection.connect(autocommit=True)
        self.addAsyncCleanup(self.db.close)

    async def test_the_same_calls(self):
        @aio.action("create_ticket")
        def ticket(title: str): ...

        with aio.run("py-async"):
            async with self.db.transaction():
                first = await ticket(self.db, "async")
                with self.assertRaises(outbox.InTransaction):
                    await aio.wait(self.db, first.operation_id)
            done = await aio.wait(self.db, first.operation_id, 60)
            self.assertEqual(done.status, "succeeded")
            again, other = await aio.enqueue_many(self.db, [ticket.request("async"), ticket.request("other")])
        self.assertEqual((again.replayed, other.replayed), (True, False))
        async with self.db.cursor() as cursor:
            self.assertEqual((await aio.get(cursor, first.operation_id)).result, done.result)
        with self.assertRaises(outbox.IdConflict):
            await aio.enqueue(self.db, "create_ticket", {"title": "b"}, operation_id=first.operation_id)
        await aio.enqueue(self.db, "create_ticket", {"title": "c"}, operation_id="py-async-late", run_at=IN_AN_HOUR)
        self.assertEqual((await aio.wait(self.db, "py-async-late", 0.2)).status, "scheduled")
        self.assertEqual(await aio.cancel(self.db, "py-async-late"), "cancelled")
        await aio.enqueue(self.db, "create_ticket", {"title": "d"}, operation_id="py-async-undo")
        await aio.wait(self.db, "py-async-undo", 60)
        undo = await aio.compensate(self.db, "py-async-undo", "close")
        self.assertEqual((await aio.wait(self.db, undo.operation_id, 60)).result, {"state": "closed"})
        self.assertIs((await aio.compensate(self.db, "py-async-undo", "close")).replayed, True)
        with self.assertRaisesRegex(outbox.UnknownTool, "burn"):
            await aio.compensate(self.db, "py-async-undo", "burn")

    async def test_it_is_woken_by_listen_and_can_be_cancelled(self):
        async def slow(db, _, hints):
            await real(db, 60, hints)

        real = aio._sleep
        await aio.enqueue(self.db, "create_ticket", {"title": "x"}, operation_id="py-async-woken",
                          run_at=datetime.now(timezone.utc) + timedelta(seconds=1))
        with mock.patch.object(aio, "_sleep", slow):
            seen = await aio.wait(self.db, "py-async-woken", 50)
            self.assertEqual(seen.status, "succeeded")
            self.assertLess((datetime.now(timezone.utc) - seen.finished_at).total_seconds(), 40)
            with self.assertRaises(asyncio.TimeoutError):
                await asyncio.wait_for(aio.wait(self.db, "py-nobody", 60), 0.5)
        channels = await (await self.db.execute("SELECT * FROM pg_listening_channels()")).fetchall()
        self.assertEqual(channels, [])

    async def test_retry(self):
        tries = []

        async def work(db):
            tries.append(1)
            if len(tries) < 3:
                await db.execute("DO $$ BEGIN RAISE SQLSTATE '40001'; END $$")
            return await aio.enqueue(db, "create_ticket", {"title": "x"}, operation_id="py-async-retry")

        self.assertFalse((await aio.retry_transaction(self.db, work)).replayed)
        self.assertEqual(len(tries), 3)

    async def test_tasks_have_runs_of_their_own(self):
        async def task(name):
            with aio.run(name):
                await asyncio.sleep(0.01)
                return aio.current_run()

        self.assertEqual(await asyncio.gather(task("a"), task("b")), ["a", "b"])


if __name__ == "__main__":
    unittest.main()

"""The child that runs Python programs, inside bubblewrap. The protocol is in protocol.ts."""

import ast
import builtins
import json
import os
import queue
import re
import resource
import struct
import sys
import threading
import time
import traceback
import types

READY, CALL, LOG, VALUE, DONE, RUN, ANSWER, REFUSAL = 1, 2, 3, 4, 5, 7, 8, 9
HEADER = struct.Struct('>BII')
PROGRAM = '<program>'
# As how many bytes a short text counts once output is dropped: half as many as in program.ts, because `print` writes twice.
PRINT_COST = 1024
# Importing asyncio takes more CPU time than the rest of starting, and most programs do not use it.
ASYNCHRONOUS = re.compile('async|await|ahost')
# How long a child waits for its program before it imports asyncio.
ASYNCIO_DELAY_SECONDS = 5

# Move the connection to other descriptors, so that output to the standard ones cannot corrupt it.
host_in, host_out = os.dup(0), os.dup(1)
os.dup2(2, 1)
os.close(0)
os.open('/dev/null', os.O_RDONLY)

# Limit threads, which all programs of the machine share. Older kernels count all processes of the user.
if [int(part) for part in re.findall('[0-9]+', os.uname().release)[:2]] >= [5, 14]:
    resource.setrlimit(resource.RLIMIT_NPROC, (64, 64))
threading.stack_size(512 * 1024)
writing = threading.Lock()
runs = queue.SimpleQueue()
pending = {}
calls_made = 0
printed = task = loop = None


class HostRefusal(Exception):
    def __init__(self, code, message):
        super().__init__(message)
        self.code, self.message = code, message


class OutputError(BaseException):
    """Ends a program that floods its output; `except Exception` does not catch it."""


def send(kind, number, payload=b''):
    with writing:
        rest = memoryview(HEADER.pack(kind, number, len(payload)) + payload)
        while rest:
            rest = rest[os.write(host_out, rest):]


def exactly(length):
    parts = []
    while length > 0:
        part = os.read(host_in, min(length, 1 << 20))
        if not part:
            os._exit(0)
        parts.append(part)
        length -= len(part)
    return b''.join(parts)


def receive():
    while True:
        kind, number, length = HEADER.unpack(exactly(HEADER.size))
        payload = exactly(length)
        if kind == RUN:
            runs.put(json.loads(payload))
            continue
        answered = pending.pop(number, None)
        if answered is None:
            continue
        if kind == ANSWER:
            answered((payload.decode(), None))
        else:
            refusal = json.loads(payload)
            answered((None, HostRefusal(refusal['code'], refusal['message'])))


def ask(name, text, answered):
    """Sends a call to the host. Another thread calls `answered` with a pair of result and error."""
    global calls_made
    if not isinstance(name, str) or not isinstance(text, str):
        raise TypeError('host(name, input) takes two strings')
    message = (name.replace('\n', ' ') + '\n' + text).encode('utf-8', 'replace')
    with writing:
        calls_made += 1
        number = calls_made
    if number - task['calls_made'] > task['calls']:
        raise HostRefusal('OVERLOADED', f'The limit of {task["calls"]} calls per program is reached.')
    if len(message) > task['callBytes']:
        raise HostRefusal('OVERLOADED', f"A call's input exceeds {task['callBytes']} bytes.")
    pending[number] = answered
    printed.send()
    send(CALL, number, message)


def host(name, text):
    """Calls the host and waits; use threads for parallel calls."""
    answers = queue.SimpleQueue()
    ask(name, text, answers.put)
    result, error = answers.get()
    if error:
        raise error
    return result


async def ahost(name, text):
    """Calls the host; use `await asyncio.gather(…)` for parallel calls."""
    import asyncio

    running = asyncio.get_running_loop()
    future = running.create_future()

    def settle(result, error):
        if future.done():
            return
        if error:
            future.set_exception(error)
        else:
            future.set_result(result)

    def answered(answer):
        try:
            running.call_soon_threadsafe(settle, *answer)
        except RuntimeError:
            # The program has closed its event loop.
            pass

    ask(name, text, answered)
    return await future


class Printed:
    """Batches the output of a program, up to a limit."""

    encoding = 'utf-8'

    def __init__(self):
        self.begin({'logBytes': 0, 'droppedLogBytes': 0})

    def begin(self, task):
        self.limit, self.left, self.left_to_drop = task['logBytes'], task['logBytes'], task['droppedLogBytes']
        self.cut = False
        self.batch, self.sent = b'', 0

    def write(self, text):
        data = str(text).encode('utf-8', 'replace')
        if self.left <= 0 and data:
            self.left_to_drop -= max(len(data), PRINT_COST)
            if self.left_to_drop < 0:
                raise OutputError(f'The program was stopped because it kept printing after the first {self.limit} bytes. Print less.')
        self.batch += data[: max(0, self.left)]
        self.cut = self.cut or len(data) > self.left
        self.left -= len(data)
        if len(self.batch) > 4096 or time.monotonic() - self.sent > 0.05:
            self.send()
        return len(text)

    def writelines(self, lines):
        for text in lines:
            self.write(text)

    def send(self):
        batch, self.batch = self.batch, b''
        if batch:
            send(LOG, 0, batch)
        self.sent = time.monotonic()

    def flush(self):
        pass

    def isatty(self):
        return False


def returns(statements):
    """Whether a program has a return statement outside of any function."""
    for statement in statements:
        if isinstance(statement, ast.Return):
            return True
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        inner = [child for child in ast.iter_child_nodes(statement) if isinstance(child, (ast.stmt, ast.excepthandler, ast.match_case))]
        if returns(inner):
            return True
    return False


def compiled(code):
    """The code to run, and the last expression, whose value is the result."""
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    tree = compile(code, PROGRAM, 'exec', flags | ast.PyCF_ONLY_AST)
    if returns(tree.body):
        wrapper = ast.parse('async def program(): pass\nawait program()').body
        wrapper[0].body = tree.body
        tree.body = wrapper
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    first = compile(tree, PROGRAM, 'exec', flags)
    return first, last and compile(ast.Expression(last.value), PROGRAM, 'eval', flags)


def plain(value):
    if isinstance(value, (set, frozenset)):
        return list(value)
    if isinstance(value, bytes):
        return value.decode('utf-8', 'replace')
    return str(value)


def event_loop():
    global loop
    if loop is None:
        import asyncio

        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
    return loop


def evaluate(code, scope):
    for part in compiled(code):
        result = eval(part, scope) if part else None
        if isinstance(result, types.CoroutineType):
            result = event_loop().run_until_complete(result)
    return result


async def evaluate_in_loop(code, scope):
    """The same while the event loop runs, so that any part of the program can start tasks."""
    for part in compiled(code):
        result = eval(part, scope) if part else None
        if isinstance(result, types.CoroutineType):
            result = await result
    return result


def text_of(error):
    try:
        return str(error)
    except BaseException:
        return 'The exception cannot be shown.'


def described(error):
    found = {'name': type(error).__name__[:200], 'message': text_of(error)[:8000]}
    if isinstance(error, SyntaxError):
        found['message'] = str(error.msg)[:8000]
        if error.filename == PROGRAM and error.lineno:
            found['line'], found['column'] = error.lineno, max(1, error.offset or 1)
    else:
        for frame in traceback.extract_tb(error.__traceback__):
            if frame.filename == PROGRAM and frame.lineno:
                found['line'] = frame.lineno
                found['column'] = (getattr(frame, 'colno', None) or 0) + 1
    code = getattr(error, 'code', None)
    if isinstance(code, str):
        found['code'] = code[:200]
    return found


def run_program(task, scope):
    """Runs a program and returns its result."""
    truncated = []
    code = task['code']
    try:
        if task['prelude'] and '__prelude__' not in scope:
            scope['__prelude__'] = True
            exec(compile(task['prelude'], '<prelude>', 'exec'), scope)
        if loop or ASYNCHRONOUS.search(code):
            value = event_loop().run_until_complete(evaluate_in_loop(code, scope))
        else:
            value = evaluate(code, scope)
        if value is not None:
            text = json.dumps(value, default=plain, allow_nan=False, ensure_ascii=False).encode('utf-8', 'replace')
            if len(text) > task['valueBytes']:
                limit = task['valueBytes']
                truncated.append(f'The result is larger than {limit} bytes: only the beginning of its JSON text is returned.')
                text = json.dumps(text[: limit // 6].decode('utf-8', 'replace')).encode()
            send(VALUE, 0, text)
        return {'status': 'ok', 'truncated': truncated}
    except MemoryError:
        message = 'The program exceeded its memory limit.'
        error = {'name': 'MemoryError', 'message': message}
        return {'status': 'out_of_memory', 'error': error, 'truncated': truncated, 'broken': True}
    except SystemExit as error:
        if not error.code:
            return {'status': 'ok', 'truncated': truncated}
        return {'status': 'error', 'error': described(error), 'truncated': truncated}
    except BaseException as error:
        return {'status': 'error', 'error': described(error), 'truncated': truncated}


def main():
    global printed, task
    printed = Printed()
    sys.stdout = sys.stderr = printed
    scope = {'__name__': '__main__', '__builtins__': builtins}
    scope.update(host=host, ahost=ahost, HostRefusal=HostRefusal)
    threading.Thread(target=receive, daemon=True).start()
    send(READY, 0)
    try:
        next_task = runs.get(timeout=ASYNCIO_DELAY_SECONDS)
    except queue.Empty:
        import asyncio

        next_task = runs.get()
    while True:
        task = next_task | {'calls_made': calls_made}
        printed.begin(task)
        found = run_program(task, scope)
        printed.send()
        if printed.cut:
            found['truncated'].append(f'Only the first {task["logBytes"]} bytes of the output are shown.')
        send(DONE, 0, json.dumps(found).encode())
        next_task = runs.get()


main()

"""The child that runs Python programs, inside bubblewrap. The protocol is in protocol.ts."""

import ast
import asyncio
import builtins
import inspect
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
from concurrent.futures import Future

READY, CALL, LOG, VALUE, DONE, RUN, ANSWER, REFUSAL = 1, 2, 3, 4, 5, 7, 8, 9
HEADER = struct.Struct('>BII')
PROGRAM = '<program>'

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
printed = task = None


class HostRefusal(Exception):
    def __init__(self, code, message):
        super().__init__(message)
        self.code, self.message = code, message


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
        future = pending.pop(number, None)
        if future is None:
            continue
        if kind == ANSWER:
            future.set_result(payload.decode())
        else:
            refusal = json.loads(payload)
            future.set_exception(HostRefusal(refusal['code'], refusal['message']))


def ask(name, text):
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
    future = pending[number] = Future()
    printed.send()
    send(CALL, number, message)
    return future


def host(name, text):
    """Calls the host and waits; use threads for parallel calls."""
    return ask(name, text).result()


async def ahost(name, text):
    """Calls the host; use `await asyncio.gather(…)` for parallel calls."""
    return await asyncio.wrap_future(ask(name, text))


class Printed:
    """Batches the output of a program, up to a limit."""

    encoding = 'utf-8'

    def __init__(self):
        self.begin(0)

    def begin(self, limit):
        self.left, self.cut = limit, False
        self.batch, self.sent = b'', 0

    def write(self, text):
        data = str(text).encode('utf-8', 'replace')
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


async def evaluate(code, scope):
    first, last = compiled(code)
    for part in (first, last):
        result = eval(part, scope) if part else None
        if inspect.iscoroutine(result):
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


def run_program(task, scope, loop):
    """Runs a program and returns its result."""
    truncated = []
    try:
        if task['prelude'] and '__prelude__' not in scope:
            scope['__prelude__'] = True
            exec(compile(task['prelude'], '<prelude>', 'exec'), scope)
        value = loop.run_until_complete(evaluate(task['code'], scope))
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
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    threading.Thread(target=receive, daemon=True).start()
    send(READY, 0)
    while True:
        task = runs.get() | {'calls_made': calls_made}
        printed.begin(task['logBytes'])
        found = run_program(task, scope, loop)
        printed.send()
        if printed.cut:
            found['truncated'].append(f'Only the first {task["logBytes"]} bytes of the output are shown.')
        send(DONE, 0, json.dumps(found).encode())


main()

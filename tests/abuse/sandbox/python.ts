import { type Attack, bursts, ends, fails, gets, prints, spins } from './attack.ts'

/** Calls the kernel past Python, and gives what it answers: -1, and why. */
const syscall = (
  number: Readonly<Record<'x64' | 'arm64', number>>,
  ...values: (number | string)[]
) => `import ctypes, platform
libc = ctypes.CDLL(None, use_errno=True)
number = ${number.x64} if platform.machine() == 'x86_64' else ${number.arm64}
[libc.syscall(number, ${values.join(', ') || 0}), ctypes.get_errno()]`

const refused = [-1, 1]
const absent = [-1, 38]

/** Ways out of the interpreter, which holds nobody: what holds is around it. */
export const escapes: readonly Attack[] = [
  fails('a shell', `import subprocess\nsubprocess.run(['/bin/sh', '-c', 'id'])`, {
    error: /not permitted|No such file/,
  }),
  gets('a shell through os', true, `import os\nos.system('id') != 0`),
  gets('a shell through libc', true, `import ctypes\nctypes.CDLL(None).system(b'id') != 0`),
  fails('a fork', `import os\nos.fork()`, { error: /not permitted/ }),
  fails('a fork bomb', `import os\nwhile True: os.fork()`, { error: /not permitted/ }),
  fails('processes', `import multiprocessing\nmultiprocessing.Process(target=print).start()`),
  fails('another program', `import os\nos.execv('/bin/sh', ['sh'])`, { error: /No such file/ }),
  fails('itself, anew', `import os, sys\nos.execv(sys.executable, [sys.executable, '-c', 'print(1)'])`),
  gets('tracing', refused, syscall({ x64: 101, arm64: 117 }, 16, 1, 0, 0)),
  gets('mounting', refused, syscall({ x64: 165, arm64: 40 }, 'b"none"', 'b"/"', 'b"tmpfs"', 0, 0)),
  gets('a user namespace', refused, syscall({ x64: 272, arm64: 97 }, 0x10000000)),
  gets('a user namespace by clone', refused, syscall({ x64: 56, arm64: 220 }, 0x10000011, 0, 0, 0, 0)),
  gets('clone3', absent, syscall({ x64: 435, arm64: 435 }, 0, 0)),
  gets('bpf', refused, syscall({ x64: 321, arm64: 280 }, 0, 0, 0)),
  gets('keys of the kernel', refused, syscall({ x64: 250, arm64: 219 }, 0, -3)),
  gets('userfaultfd', refused, syscall({ x64: 323, arm64: 282 }, 0)),
  gets('performance events', refused, syscall({ x64: 298, arm64: 241 }, 0, 0, -1, -1, 0)),
  gets('io_uring', absent, syscall({ x64: 425, arm64: 425 }, 8, 0)),
  gets('a module of the kernel', refused, syscall({ x64: 175, arm64: 105 }, 0, 0, 0)),
  gets('a file without a name', refused, syscall({ x64: 319, arm64: 279 }, 'b"x"', 0)),
  gets('shared memory', refused, syscall({ x64: 29, arm64: 194 }, 0, 1 << 30, 0o1600)),
  fails('a socket', `import socket\nsocket.create_connection(('127.0.0.1', 22), 1)`, {
    error: /not permitted|resolve|known/,
  }),
  fails('a raw socket', `import socket\nsocket.socket(socket.AF_PACKET, socket.SOCK_RAW)`, { error: /not permitted/ }),
  fails('an address', `import urllib.request\nurllib.request.urlopen('http://169.254.169.254/')`),
  gets('the environment', { PWD: '/' }, `import os\ndict(os.environ)`),
  gets(
    'what others run',
    [],
    `import os\n[n for n in (os.listdir('/proc') if os.path.exists('/proc') else []) if n.isdigit()]`,
  ),
  gets(
    'files of the machine',
    [],
    `import os\n[p for p in ('/etc/passwd', '/etc/shadow', '/root', '/home', '/var', '/proc', '/sys', '/bin/sh', '/usr/bin/env', '/run') if os.path.exists(p)]`,
  ),
  gets(
    'rights',
    [65534, 65534, []],
    `import os\n[os.getuid(), os.getgid(), [g for g in os.getgroups() if g != 65534]]`,
  ),
  fails('becoming root', `import os\nos.setuid(0)`),
  fails('changing the root', `import os\nos.chroot('/toolway')`, { error: /not permitted/ }),
  fails('a file', `open('/tmp/x', 'w')`),
  fails('a file in the root', `open('/x', 'w')`),
  fails('its own code', `open('/toolway/python.py', 'a')`),
  gets(
    'a place to write',
    [],
    `import os\nfound = []
for folder, _, _ in os.walk('/'):
    try:
        os.close(os.open(folder + '/x', os.O_CREAT | os.O_WRONLY)); found.append(folder)
    except OSError: pass
    if folder.count('/') > 3: continue
found`,
  ),
  fails('more than its limits', `import resource\nresource.setrlimit(resource.RLIMIT_AS, (-1, -1))`),
  fails('a device', `import os\nos.mknod('/dev/x', 0o60666, os.makedev(8, 0))`),
]

export const signals: readonly Attack[] = [
  ends('killing everybody', `import os\nos.kill(-1, 9)`),
  ends('killing itself', `import os, signal\nos.kill(os.getpid(), 9)\n1`),
  ends('stopping itself', `import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)\n1`, { timeoutMs: 1000 }),
  fails('leaving', `import os\nos._exit(0)`, { error: /exited before/ }),
  ends('aborting', `import os\nos.abort()`),
  fails('a fault', `import ctypes\nctypes.string_at(0)`, { error: /exited before/ }),
  spins(
    'deaf to every signal',
    `import signal
for n in range(1, 65):
    try: signal.signal(n, signal.SIG_IGN)
    except (OSError, ValueError): pass
while True: pass`,
  ),
]

export const bombs: readonly Attack[] = [
  bursts('a string', `'x' * 10**10`),
  bursts('a list', `a = []\nwhile True: a.append('x' * 1000 + str(len(a)))`),
  bursts('a number', `9 ** 9 ** 9`),
  bursts('a map of memory', `import mmap\nmmap.mmap(-1, 10**11)`),
  bursts(
    'maps of memory',
    `import mmap\na = []\nwhile True: a.append(mmap.mmap(-1, 1 << 20)); a[-1].write(b'x' * (1 << 20))`,
  ),
  bursts('threads', `import threading, time\nwhile True: threading.Thread(target=time.sleep, args=(60,)).start()`, {
    timeoutMs: 3000,
  }),
  gets(
    'threads that take nothing',
    true,
    `import _thread, ctypes, threading
ctypes.CDLL(None).mallopt(-8, 1)
threading.stack_size(32768)
held = _thread.allocate_lock()
held.acquire()
count = 0
try:
    while True: _thread.start_new_thread(held.acquire, ()); count += 1
except RuntimeError: pass
count < 64`,
  ),
  bursts('recursion', `import sys\nsys.setrecursionlimit(10**9)\ndef f(): f()\nf()`),
  bursts('a deep source', `eval('(' * 10**5 + ')' * 10**5)`),
  bursts('pipes', `import os\na = []\nwhile True: a.append(os.pipe())`),
  spins('a loop', `while True: pass`),
  spins('a loop that catches', `while True:\n  try:\n    while True: pass\n  except BaseException: pass`),
  spins('a catastrophic expression', `import re\nre.match('^(a+)+$', 'a' * 60 + 'b')`),
  spins('sleep', `import time\ntime.sleep(60)`, { timeoutMs: 400 }),
  spins(
    'threads that work',
    `import threading\ndef f():\n  while True: pass\n[threading.Thread(target=f).start() for _ in range(4)]\nf()`,
  ),
]

export const floods: readonly Attack[] = [
  prints('lines for ever', `while True: print('flood')`),
  gets('one long line', 1, `print('x' * 5_000_000)\n1`, { logs: 65_536 }),
  ends('lines past Python', `import os\nfor _ in range(2000): os.write(2, b'x' * 10000)`, { logs: 65_536 }),
  fails('lines past Python without end', `import os\nwhile True: os.write(2, b'x' * 10**6)`, { error: /Broken pipe/ }),
  gets(
    'a call that is too large',
    'OVERLOADED',
    `try: host('echo', 'x' * 3_000_000)\nexcept HostRefusal as e: code = e.code\ncode`,
  ),
  gets(
    'calls without end',
    'OVERLOADED',
    `try:\n  while True: host('echo', '1')\nexcept HostRefusal as e: code = e.code\ncode`,
  ),
  fails('a large exception', `raise Exception('x' * 10**6)`, { error: /^Exception: x{8000}$/ }),
]

/** Whatever is written to the line: at worst it is this program's own result. */
const forge = (frame: string) => `import os, struct, time
frame = ${frame}
for fd in range(3, 20):
    try: os.write(fd, frame)
    except OSError: pass
time.sleep(5)`

export const tampering: readonly Attack[] = [
  fails('a message of no kind', forge(`struct.pack('>BII', 77, 0, 2) + b'{}'`), { error: /tampered/ }),
  fails('a message without end', forge(`struct.pack('>BII', 3, 0, 0xffffffff)`), { error: /tampered/ }),
  fails('an invalid result', forge(`struct.pack('>BII', 5, 0, 2) + b'{}'`), { error: /tampered/ }),
  fails('a result that is no JSON', forge(`struct.pack('>BII', 4, 0, 2) + b'{{'`), { error: /tampered/ }),
  fails('a call twice', forge(`(struct.pack('>BII', 2, 7, 7) + b'echo\\n"1"'.ljust(7)[:7]) * 2`), {
    error: /tampered/,
  }),
  fails('an order to its host', forge(`struct.pack('>BII', 7, 0, 2) + b'{}'`), { error: /tampered/ }),
  fails('ready again and again', `${forge(`struct.pack('>BII', 1, 0, 0) * 5000`)}\nwhile True: os.write(4, frame)`, {
    error: /tampered/,
  }),
  fails('an unrequested environment state', forge(`struct.pack('>BII', 6, 0, 1) + b'x'`), { error: /tampered/ }),
  fails(
    'a flood of messages',
    `${forge(`(struct.pack('>BII', 3, 0, 1) + b'x') * 5000`)}\nwhile True: os.write(4, frame)`,
    { error: /tampered/ },
  ),
  ends('a line cut off', `import os\nos.closerange(0, 100)`),
  ends(
    'other modules of the child',
    `import sys\nmain = sys.modules['__main__']\nmain.send(5, 0, b'{"status":"ok","truncated":[]}')\nmain.send = None`,
  ),
  gets('another host', 'mine', `host = lambda name, text: 'mine'\nhost('echo', '1')`),
  ends('another json', `import json\njson.dumps = lambda *a, **k: 'forged'\n[1]`),
]

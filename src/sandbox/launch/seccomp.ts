/**
 * The seccomp filter for a child. It refuses system calls that neither engine needs, especially those with a history of
 * kernel vulnerabilities.
 */

type Numbers = readonly [x64: number | undefined, arm64: number | undefined]

const refusedCalls: Readonly<Record<string, Numbers>> = {
  // System calls that access other processes.
  fork: [57, undefined],
  vfork: [58, undefined],
  ptrace: [101, 117],
  process_vm_readv: [310, 270],
  process_vm_writev: [311, 271],
  process_madvise: [440, 440],
  process_mrelease: [448, 448],
  kcmp: [312, 272],
  pidfd_open: [434, 434],
  pidfd_getfd: [438, 438],
  // Mounts and namespaces.
  mount: [165, 40],
  umount2: [166, 39],
  pivot_root: [155, 41],
  chroot: [161, 51],
  setns: [308, 268],
  unshare: [272, 97],
  open_tree: [428, 428],
  move_mount: [429, 429],
  fsopen: [430, 430],
  fsconfig: [431, 431],
  fsmount: [432, 432],
  fspick: [433, 433],
  mount_setattr: [442, 442],
  name_to_handle_at: [303, 264],
  open_by_handle_at: [304, 265],
  fanotify_init: [300, 262],
  // System calls that affect the kernel and the machine.
  bpf: [321, 280],
  perf_event_open: [298, 241],
  userfaultfd: [323, 282],
  keyctl: [250, 219],
  add_key: [248, 217],
  request_key: [249, 218],
  kexec_load: [246, 104],
  kexec_file_load: [320, 294],
  init_module: [175, 105],
  finit_module: [313, 273],
  delete_module: [176, 106],
  reboot: [169, 142],
  swapon: [167, 224],
  swapoff: [168, 225],
  syslog: [103, 116],
  acct: [163, 89],
  quotactl: [179, 60],
  quotactl_fd: [443, 443],
  settimeofday: [164, 170],
  clock_settime: [227, 112],
  clock_adjtime: [305, 266],
  adjtimex: [159, 171],
  sethostname: [170, 161],
  setdomainname: [171, 162],
  iopl: [172, undefined],
  ioperm: [173, undefined],
  modify_ldt: [154, undefined],
  lookup_dcookie: [212, 18],
  nfsservctl: [180, 42],
  personality: [135, 92],
  vhangup: [153, 58],
  // System calls for network access, and for memory that the process limits do not cover.
  memfd_create: [319, 279],
  memfd_secret: [447, 447],
  shmget: [29, 194],
  shmat: [30, 196],
  shmctl: [31, 195],
  msgget: [68, 186],
  semget: [64, 190],
  mq_open: [240, 180],
  mbind: [237, 235],
  migrate_pages: [256, 238],
  move_pages: [279, 239],
  set_mempolicy: [238, 237],
  socket: [41, 198],
}

/**
 * Optional system calls: libraries work without them. `clone3` is refused because a filter cannot inspect its flags;
 * libraries then use `clone` instead.
 */
const absentCalls: Readonly<Record<string, Numbers>> = {
  io_uring_setup: [425, 425],
  io_uring_enter: [426, 426],
  io_uring_register: [427, 427],
  clone3: [435, 435],
}

const clone: Numbers = [56, 220]
const CLONE_THREAD = 0x10000

const audit = { x64: 0xc000_003e, arm64: 0xc000_00b7 } as const
/** First system call number of the x32 table on x64. */
const x32 = 0x4000_0000
/** System calls with this number or higher are refused, because they are newer than this filter. */
const newest = 470

const EPERM = 1
const ENOSYS = 38
const allowAction = 0x7fff_0000
const kill = 0x8000_0000
const fail = (errno: number) => 0x0005_0000 | errno

/** BPF operations. */
const loadOperation = 0x20
const ifEqual = 0x15
const ifAtLeast = 0x35
const ifAnyOf = 0x45
const answerOperation = 0x06

/** Offsets in `seccomp_data`. */
const callNumber = 0
const architecture = 4
const firstArgument = 16

/** The filter in binary form; undefined for unsupported processors. */
export function seccompFilter(processor: string = process.arch): Buffer | undefined {
  if (processor !== 'x64' && processor !== 'arm64') return undefined
  const column = processor === 'x64' ? 0 : 1
  const refuse = (table: Readonly<Record<string, Numbers>>, errno: number) =>
    Object.values(table)
      .flatMap((row) => row[column] ?? [])
      .flatMap((number) => [instruction(ifEqual, number, 0, 1), instruction(answerOperation, fail(errno))])
  return Buffer.concat([
    instruction(loadOperation, architecture),
    instruction(ifEqual, audit[processor], 1, 0),
    instruction(answerOperation, kill),
    instruction(loadOperation, callNumber),
    instruction(ifAtLeast, x32, 0, 1),
    instruction(answerOperation, fail(EPERM)),
    instruction(ifAtLeast, newest, 0, 1),
    instruction(answerOperation, fail(ENOSYS)),
    ...refuse(refusedCalls, EPERM),
    ...refuse(absentCalls, ENOSYS),
    // Allow new threads, but neither new processes nor new namespaces.
    instruction(ifEqual, clone[column] as number, 1, 0),
    instruction(answerOperation, allowAction),
    instruction(loadOperation, firstArgument),
    instruction(ifAnyOf, CLONE_THREAD, 1, 0),
    instruction(answerOperation, fail(EPERM)),
    instruction(answerOperation, allowAction),
  ])
}

function instruction(code: number, value: number, then = 0, otherwise = 0): Buffer {
  const bytes = Buffer.alloc(8)
  bytes.writeUInt16LE(code, 0)
  bytes.writeUInt8(then, 2)
  bytes.writeUInt8(otherwise, 3)
  bytes.writeUInt32LE(value, 4)
  return bytes
}

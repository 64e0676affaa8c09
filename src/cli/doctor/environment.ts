import { readFile } from 'node:fs/promises'
import { clientKinds } from '../../config/import/client-kind.ts'
import type { Config } from '../../config/schema.ts'
import type { Isolation } from '../../core/executor.ts'
import { pluralize } from '../../lib/message-text.ts'
import { stateOf } from '../commands/client-state.ts'
import type { Shell } from '../kit.ts'
import { type CheckFinding, type Findings, ok, problem, warning } from './finding.ts'

const isolation = {
  bwrap: 'in bwrap, with separate namespaces',
  process: 'in a separate process, without namespaces',
  worker: 'in a separate thread, without namespaces',
} as const

/** Runs test programs to check which languages can be run here and how they are isolated. */
export async function sandboxFinding(
  { languages: wanted, minIsolation }: Config['sandbox'],
  probe: () => Promise<Isolation>,
  kernel: Kernel = readKernel,
): Promise<CheckFinding> {
  if (wanted.length === 0) return ok('sandbox.languages is empty: code execution is off')
  const { tier, languages, missing } = await probe()
  const details = missing.length > 0 ? missing : undefined
  const remedy = missing.some((why) => why.startsWith('bwrap does not work')) ? await allowing(kernel) : undefined
  const names = languages.map((language) => titles[language]).join(', ')
  if (tier !== undefined) return ok(`code in ${names} runs ${isolation[tier]}`, remedy, details)
  const message = `code cannot be run: sandbox.minIsolation requires ${minIsolation}, which does not work here`
  return warning(message, remedy, details)
}

/** Reads a kernel setting; undefined if it does not exist. */
type Kernel = (name: string) => Promise<string | undefined>

const readKernel: Kernel = (name) =>
  readFile(`/proc/sys/${name.replaceAll('.', '/')}`, 'utf8').then(
    (text) => text.trim(),
    () => undefined,
  )

/** Kernel settings that can forbid the user namespaces that bwrap needs, with the values that forbid and allow them. */
const switches = [
  { name: 'kernel.apparmor_restrict_unprivileged_userns', forbids: '1', allows: '0' },
  { name: 'kernel.unprivileged_userns_clone', forbids: '0', allows: '1' },
  { name: 'user.max_user_namespaces', forbids: '0', allows: '15000' },
]

/** The command that makes bwrap work, if a kernel setting prevents it. */
async function allowing(kernel: Kernel): Promise<string | undefined> {
  for (const { name, forbids, allows } of switches) {
    if ((await kernel(name)) === forbids) return `sudo sysctl ${name}=${allows}   # docs/sandbox.md lists alternatives`
  }
  return undefined
}

const titles = { javascript: 'JavaScript', typescript: 'TypeScript', python: 'Python' } as const

/** A gateway's open files apart from its servers, with a few clients. */
const ownFiles = 50
/** Per server process: its stdin, stdout and stderr. */
const filesPerProcess = 3

/** Compares the limit of open files with what the configured server processes need. */
export function openFilesFindings(mcpServers: Config['mcpServers'], limit = openFilesLimit): Findings {
  const max = limit()
  if (max === undefined) return []
  const processes = Object.values(mcpServers).filter((server) => 'command' in server && !server.disabled).length
  const needed = ownFiles + filesPerProcess * processes
  const message = `at most ${max}; ${pluralize(processes, 'local server')} and a few clients need about ${needed}`
  if (max >= needed) return ok(message)
  return problem(message, `ulimit -n ${2 ** Math.ceil(Math.log2(needed * 2))}   # or LimitNOFILE= in systemd`)
}

/** The limit of open files of this process; undefined if there is none or it is unknown. */
function openFilesLimit(): number | undefined {
  Object.assign(process.report, { excludeNetwork: true })
  const { userLimits } = process.report.getReport() as { userLimits?: { open_files?: { soft?: number | string } } }
  const soft = Number(userLimits?.open_files?.soft)
  return Number.isFinite(soft) ? soft : undefined
}

/** Reports which of this user's clients are connected. */
export async function clientFindings(shell: Shell): Promise<Findings> {
  const states = await Promise.all(clientKinds.map((client) => stateOf(client, shell)))
  const broken = states.filter(({ state }) => state === 'unreadable')
  const named = (wanted: string) => states.filter(({ state }) => state === wanted)
  const [connected, others] = [named('connected'), named('not connected')]
  const list = (some: typeof states) => some.map(({ name }) => name).join(', ')
  const parts = [
    connected.length > 0 ? `connected: ${list(connected)}` : 'no client is connected',
    ...(others.length > 0 ? [`not connected: ${list(others)}`] : []),
  ]
  const remedy = others[0] && `${shell.command} connect ${others[0].client}`
  return [
    ok(parts.join('; '), remedy),
    ...broken.map(({ name, problem }) => warning(`${name}: ${problem ?? 'its file cannot be read'}`)),
  ]
}

import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { promisify } from 'node:util'
import type { Config } from '../../config/schema.ts'
import type { Shell } from '../shell.ts'
import { type Check, ok, warning } from './finding.ts'

const run = promisify(execFile)
const patienceMs = 5_000
/** What running code would need: a view of the files, and namespaces of its own. */
const trial = [
  '--ro-bind',
  '/',
  '/',
  '--dev',
  '/dev',
  '--proc',
  '/proc',
  '--unshare-all',
  '--die-with-parent',
  '--',
  'true',
]

/** Which isolation this machine offers to code of agents. */
export const sandboxCheck = (config: Config | undefined, { env }: Shell): Check => ({
  name: 'sandbox',
  async run(signal) {
    const why = await bwrapFailure(env, signal)
    if (why === undefined) return ok('bwrap works: code gets namespaces of its own')
    const install = why === 'is not installed' ? 'sudo apt install bubblewrap' : letIn()
    const message = `bwrap ${why}: code would run in a process of its own, without namespaces`
    // Only who insists on it has to do something.
    if (config?.sandbox.minIsolation !== 'bwrap') return ok(message, { remedy: install })
    return warning(`${message}, and sandbox.minIsolation asks for bwrap`, install)
  },
})

/** What keeps users from having namespaces differs between distributions. */
const letIn = (): string =>
  existsSync('/proc/sys/kernel/apparmor_restrict_unprivileged_userns')
    ? 'sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0'
    : 'sudo sysctl -w user.max_user_namespaces=28633'

async function bwrapFailure(env: Shell['env'], signal: AbortSignal): Promise<string | undefined> {
  try {
    await run('bwrap', trial, { env: { PATH: env.PATH }, timeout: patienceMs, signal })
    return undefined
  } catch (error) {
    signal.throwIfAborted()
    const { code, stderr } = error as NodeJS.ErrnoException & { stderr?: string }
    if (code === 'ENOENT') return 'is not installed'
    const [said = ''] = (stderr ?? '').trim().split('\n')
    return `does not work here${said === '' ? '' : ` (${said})`}`
  }
}

import { readFile } from 'node:fs/promises'
import type { Config } from '../../config/schema.ts'
import type { Isolation } from '../../core/executor.ts'
import { type Check, ok, warning } from './finding.ts'

const held = {
  bwrap: 'behind bwrap, in namespaces of its own',
  process: 'in a process of its own, without namespaces',
  worker: 'in a thread of its own, without namespaces',
} as const

/** Which programs of agents can be run here, and how they are held: found out by running some. */
export const sandboxCheck = (
  { languages: wanted, minIsolation }: Config['sandbox'],
  probe: () => Promise<Isolation>,
  kernel: Kernel = readKernel,
): Check => ({
  name: 'sandbox',
  async run() {
    if (wanted.length === 0) return ok('sandbox.languages is empty: no code is run')
    const { tier, languages, missing } = await probe()
    const more = missing.length > 0 ? { details: missing } : {}
    const remedy = missing.some((why) => why.startsWith('bwrap does not work')) ? await allowing(kernel) : undefined
    if (tier !== undefined)
      return ok(`code in ${listed(languages)} runs ${held[tier]}`, { ...(remedy !== undefined && { remedy }), ...more })
    const message = `no code can be run: sandbox.minIsolation asks for ${minIsolation}, which does not work here`
    return warning(message, remedy, more)
  },
})

/** What a setting of the kernel is; nothing where there is none of this name. */
type Kernel = (name: string) => Promise<string | undefined>

const readKernel: Kernel = (name) =>
  readFile(`/proc/sys/${name.replaceAll('.', '/')}`, 'utf8').then(
    (text) => text.trim(),
    () => undefined,
  )

/** Settings that forbid user namespaces, which bwrap needs, and what allows them. */
const switches = [
  { name: 'kernel.apparmor_restrict_unprivileged_userns', forbids: '1', allows: '0' },
  { name: 'kernel.unprivileged_userns_clone', forbids: '0', allows: '1' },
  { name: 'user.max_user_namespaces', forbids: '0', allows: '15000' },
]

/** The line that lets bwrap work, where the kernel is what stands in its way. */
async function allowing(kernel: Kernel): Promise<string | undefined> {
  for (const { name, forbids, allows } of switches) {
    if ((await kernel(name)) === forbids) return `sudo sysctl ${name}=${allows}   # docs/sandbox.md has other ways`
  }
  return undefined
}

const titles = { javascript: 'JavaScript', typescript: 'TypeScript', python: 'Python' } as const

const listed = (languages: Isolation['languages']): string => languages.map((language) => titles[language]).join(', ')

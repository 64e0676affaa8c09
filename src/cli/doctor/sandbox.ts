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
): Check => ({
  name: 'sandbox',
  async run() {
    if (wanted.length === 0) return ok('sandbox.languages is empty: no code is run')
    const { tier, languages, missing } = await probe()
    const more = missing.length > 0 ? { details: missing } : {}
    if (tier !== undefined) return ok(`code in ${listed(languages)} runs ${held[tier]}`, more)
    const message = `no code can be run: sandbox.minIsolation asks for ${minIsolation}, which does not work here`
    return warning(message, undefined, more)
  },
})

const titles = { javascript: 'JavaScript', typescript: 'TypeScript', python: 'Python' } as const

const listed = (languages: Isolation['languages']): string => languages.map((language) => titles[language]).join(', ')

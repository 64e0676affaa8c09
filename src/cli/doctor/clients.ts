import { clientKinds } from '../../config/import/client-kind.ts'
import { stateOf } from '../commands/connect-list.ts'
import { type Shell, spelling } from '../shell.ts'
import { type Check, ok, warning } from './finding.ts'

/** Which clients of this user come to Toolway. */
export const clientCheck = (shell: Shell): Check => ({
  name: 'clients',
  async run() {
    const states = await Promise.all(clientKinds.map((client) => stateOf(client, shell)))
    const broken = states.filter(({ state }) => state === 'unreadable')
    const named = (wanted: string) => states.filter(({ state }) => state === wanted)
    const [connected, others] = [named('connected'), named('not connected')]
    const list = (some: typeof states) => some.map(({ name }) => name).join(', ')
    const parts = [
      connected.length > 0 ? `connected: ${list(connected)}` : 'none is connected',
      ...(others.length > 0 ? [`not connected: ${list(others)}`] : []),
    ]
    const [next] = others
    const remedy = next && { remedy: `${spelling(shell.env)} connect ${next.client}` }
    return [
      ok(parts.join('; '), remedy),
      ...broken.map(({ name, problem }) => warning(`${name}: ${problem ?? 'its file cannot be read'}`)),
    ]
  },
})

import type { KeyView } from '../../../src/admin/contract.ts'
import type { KeysService } from '../../../src/admin/keys/keys.ts'
import { invalidArguments } from '../../../src/core/errors.ts'
import type { Scene } from './scene.ts'

const dayMs = 86_400_000

/** API keys that are lost when the scene ends. */
export function createSceneKeys({ name, agents }: Scene, now: () => number): KeysService {
  const keyOf = (id: string, more: Partial<KeyView>): KeyView => ({
    ...{ id, agents: [], admin: false, created: now() - 20 * dayMs, expires: null, expired: false },
    ...{ lastUsed: null, source: 'file', previous: null },
    ...more,
  })
  const usual = [
    keyOf('prometheus', { agents: ['*'], created: null, lastUsed: now() - 9_000, source: 'configuration' }),
    keyOf('ada', { agents: [...agents.slice(0, 3)], admin: true, lastUsed: now() - 60_000 }),
    keyOf('ci', {
      ...{ agents: [...agents.slice(1, 2)], created: now() - 3_600_000, expires: now() + 90 * dayMs },
      previous: { until: now() + dayMs - 3_600_000, lastUsed: now() - 240_000 },
    }),
    keyOf('trial', { expires: now() - dayMs, expired: true, lastUsed: now() - 2 * dayMs }),
  ]
  const many = Array.from({ length: 60 }, (_, index) =>
    keyOf(`team.department.key-with-a-long-name-${index}`, { agents: [...agents], lastUsed: now() - index * 60_000 }),
  )
  let keys: readonly KeyView[] = name === 'empty' ? [] : name === 'crowded' ? many : usual
  const find = (id: string): KeyView => {
    const found = keys.find((key) => key.id === id && key.source === 'file')
    if (found) return found
    throw invalidArguments(`There is no key ${id}.`)
  }
  const view = () => ({ keys, file: '/home/ada/.local/state/toolway/keys.json', problem: null, agents, endpoints: [] })
  return {
    keys: view,
    async createKey(_, { id, agents, admin, expiresInMs }) {
      if (keys.some((key) => key.id === id)) throw invalidArguments(`A key named ${id} already exists.`)
      const expires = expiresInMs === undefined ? null : now() + expiresInMs
      const key = keyOf(id, { agents, admin, created: now(), expires })
      keys = [...keys, key]
      return { secret: `twk_${id}_${'a'.repeat(43)}`, key }
    },
    async rotateKey(_, id, { keepOldMs }) {
      const previous = keepOldMs === 0 ? null : { until: now() + keepOldMs, lastUsed: find(id).lastUsed }
      const key = { ...find(id), created: now(), lastUsed: null, previous }
      keys = keys.map((other) => (other.id === id ? key : other))
      return { secret: `twk_${id}_${'b'.repeat(43)}`, key }
    },
    async revokeKey(_, id) {
      const revoked = find(id)
      keys = keys.filter((key) => key !== revoked)
      return view()
    },
  }
}

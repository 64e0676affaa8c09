import type { Aim } from '../load/orders.ts'
import type { Listening } from '../targets/child.ts'
import { openSession } from '../targets/session.ts'

/** What everyday use is made of: calls in both eras on every server, lists, meta-tools, batches, a large result. */
export async function everydayUse(target: Listening): Promise<{ aim: Aim; end(): Promise<void> }> {
  const legacy = await openSession(target)
  const modern = await openSession({ ...target, era: 'modern' })
  const call = (name: string, given: object = { message: 'hello' }) => ({ name, arguments: given })
  const batch = [
    { server: 'pipe', tool: 'echo', args: { message: 'one' } },
    { server: 'web', tool: 'slow', args: { message: 'two' } },
  ]
  const aim = legacy.aim(
    ...['pipe__echo', 'web__echo', 'writes__echo', 'pipe__slow', 'alone__echo'].flatMap((name) => [
      legacy.prepare('tools/call', call(name), 'Echo: '),
      modern.prepare('tools/call', call(name), 'Echo: '),
    ]),
    legacy.prepare('tools/list', {}, '"tools":'),
    modern.prepare('tools/list', {}, '"tools":'),
    legacy.prepare('tools/call', call('list_servers', {}), 'pipe'),
    legacy.prepare('tools/call', call('execute_tools', { calls: batch }), '"ok":true'),
    legacy.prepare('tools/call', call('pipe__large'), 'Echo: ', 1024 * 1024),
  )
  return { aim, end: () => legacy.end() }
}

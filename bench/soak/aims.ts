import type { Aim, PreparedRequest } from '../load/orders.ts'
import type { Listening } from '../targets/child.ts'
import { openSession } from '../targets/session.ts'

/**
 * A mix of requests in both protocol revisions: calls to every server, lists, meta-tools and batches. One request in a
 * hundred has a result of 1 MiB.
 */
export async function everydayUse(target: Listening): Promise<{ aim: Aim; end(): Promise<void> }> {
  const legacy = await openSession(target)
  const modern = await openSession({ ...target, era: 'modern' })
  const call = (name: string, given: object = { message: 'hello' }) => ({ name, arguments: given })
  const batch = [
    { server: 'pipe', tool: 'echo', args: { message: 'one' } },
    { server: 'web', tool: 'slow', args: { message: 'two' } },
  ]
  const calls = ['pipe__echo', 'web__echo', 'writes__echo', 'pipe__slow', 'alone__echo', 'many__echo'].flatMap(
    (name) => [legacy.prepare('tools/call', call(name), 'Echo: '), modern.prepare('tools/call', call(name), 'Echo: ')],
  )
  const others = [
    legacy.prepare('tools/list', {}, '"tools":'),
    modern.prepare('tools/list', {}, '"tools":'),
    legacy.prepare('tools/call', call('list_servers', {}), 'pipe'),
    legacy.prepare('tools/call', call('execute_tools', { calls: batch }), '"ok":true'),
  ]
  const large = legacy.prepare('tools/call', call('pipe__large'), 'Echo: ', 1024 * 1024)
  const requests: PreparedRequest[] = [...others, large]
  for (let number = 0; requests.length < 100; number++) {
    requests.push(calls[number % calls.length] as PreparedRequest)
  }
  return { aim: legacy.aim(...requests), end: () => legacy.end() }
}

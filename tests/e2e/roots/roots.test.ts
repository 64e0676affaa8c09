import { mkdir, realpath } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect, test } from 'vitest'
import { type CallerKind, connectCaller, type StoryCaller } from '../../fixtures/callers.ts'
import { temporaryFolder } from '../../fixtures/folders.ts'
import { stdioServers } from '../../fixtures/servers.ts'
import { type LocalToolway, startToolway } from '../../fixtures/toolway.ts'
import { until } from '../../fixtures/until.ts'

/** The real server: it asks for roots right after the handshake, and uses the folder of its command line without any. */
async function story(open: AsyncDisposableStack, settings: object = {}) {
  const home = await realpath(open.use(await temporaryFolder()).path)
  const folder = async (name: string) => {
    await mkdir(join(home, name))
    return join(home, name)
  }
  const configured = await folder('configured')
  const files = { ...stdioServers.filesystem(configured), ...settings }
  const toolway = open.use(await startToolway({ mcpServers: { files } }))
  return { toolway, folder, configured }
}

const withRoot = (kind: CallerKind, toolway: LocalToolway, root: string): Promise<StoryCaller> =>
  connectCaller(kind, toolway, {
    capabilities: { roots: { listChanged: true } },
    answer: () => ({ roots: [{ uri: pathToFileURL(root).href, name: 'root' }] }),
  })

async function allowedTo(caller: StoryCaller): Promise<string[]> {
  const { content } = await caller.call('files__list_allowed_directories')
  const [, ...folders] = (content as [{ text: string }])[0].text.split('\n')
  return folders
}

// At once, because each has a gateway of its own and waits for processes.
const kinds: CallerKind[] = ['v1', 'v2', 'modern']

test.concurrent.each(kinds)('G3: the very first call of a %s client finds its own roots in place', async (kind) => {
  await using open = new AsyncDisposableStack()
  const { toolway, folder } = await story(open)
  const root = await folder('mine')
  expect(await allowedTo(open.use(await withRoot(kind, toolway, root)))).toEqual([root])
})

test.concurrent.each(kinds)(
  'G3: two %s clients with one credential and one name have each its own roots',
  async (kind) => {
    await using open = new AsyncDisposableStack()
    const { toolway, folder } = await story(open)
    const roots = [await folder('one'), await folder('two')]
    const clients = await Promise.all(roots.map(async (root) => open.use(await withRoot(kind, toolway, root))))
    for (let round = 0; round < 3; round++) {
      expect(await Promise.all(clients.map(allowedTo))).toEqual(roots.map((root) => [root]))
    }
    // One for each, one through which the server was looked at, and one that asked when nobody could tell its roots.
    expect(toolway.servers().length).toBeLessThanOrEqual(4)
  },
)

test.concurrent.each(kinds)(
  'G3: after an idle stop a %s client without roots is served as one without roots',
  async (kind) => {
    await using open = new AsyncDisposableStack()
    const { toolway, folder, configured } = await story(open, { idle: '500ms' })
    const root = await folder('mine')
    {
      await using rooted = await withRoot(kind, toolway, root)
      expect(await allowedTo(rooted)).toEqual([root])
    }
    await until(() => toolway.servers().length === 0, { what: 'the idle processes to stop' })
    const plain = open.use(
      await connectCaller(kind, toolway, { capabilities: { elicitation: {} }, answer: () => ({ action: 'decline' }) }),
    )
    expect(await allowedTo(plain)).toEqual([configured])
  },
)

import { createServer, type IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { people } from '../../../src/admin/admin.fixture.ts'
import { AdminEndpoint } from '../../../src/admin/endpoint.ts'
import type { Chat } from '../../../src/core/chat.ts'
import { systemClock } from '../../../src/core/clock.ts'
import { ToolwayError } from '../../../src/core/errors.ts'
import { createBudgets } from '../../../src/core/limits/budget.ts'
import { silentLog } from '../../../src/core/log.ts'
import { createTestAccess } from '../../../src/serve/access.fixture.ts'
import { admitWith } from '../../../src/serve/auth/throttle.fixture.ts'
import { HttpError, rpcCodes, sendHttpError, toHttpError } from '../../../src/serve/errors.ts'
import { createBodyReader } from '../../../src/serve/http/bodies.ts'
import { allowedHosts } from '../../../src/serve/http/hosts.ts'
import { listen } from '../../../src/serve/http/listen.ts'
import { httpConfig } from '../../../src/serve/http/server.fixture.ts'
import { createFailingAdmin, createSceneAdmin } from './admin.ts'
import { sceneChat } from './chat.ts'
import { createScene, type SceneName } from './scene.ts'

/** A dashboard on a free port. The tokens are `operator` (admin) and `dev` (no admin rights). */
export interface SceneServer extends AsyncDisposable {
  readonly origin: string
}

const chats: Readonly<Record<SceneName, () => Chat | undefined>> = {
  usual: () => sceneChat,
  busy: () => sceneChat,
  rush: () => sceneChat,
  crowded: () => ({
    ...sceneChat,
    models: () => Array.from({ length: 40 }, (_, at) => `a-model-with-a-long-name-${at}`),
  }),
  empty: () => undefined,
  failing() {
    throw new ToolwayError('INTERNAL', 'The store of the gateway is damaged; its log has the cause.')
  },
}

/** The real HTTP server, API and pages, with a fake admin service. */
export async function openScene(name: SceneName, wantedPort = 0): Promise<SceneServer> {
  const server = createServer({ requireHostHeader: false })
  const port = await listen(server, '127.0.0.1', wantedPort)
  const config = httpConfig({})
  const scene = createSceneAdmin(createScene(name, Date.now()), Date.now)
  const authenticate = people()
  const endpoint = new AdminEndpoint({
    ...{
      admin: name === 'failing' ? createFailingAdmin(scene) : scene,
      access: createTestAccess(),
      authenticate,
      admit: admitWith(authenticate, systemClock),
      bodies: createBodyReader(config),
      budgets: createBudgets(),
    },
    ...{ config, hosts: allowedHosts(config, port), port, version: '0.7.0', clock: systemClock, log: silentLog },
    chat: chats[name],
    folder: join(import.meta.dirname, '../../../web/dist'),
  })
  server.on('request', (request: IncomingMessage, response) => {
    try {
      const path = (request.url ?? '').split('?')[0] as string
      if (!endpoint.handle(request, response, path))
        throw new HttpError(404, rpcCodes.request, 'There is nothing here.')
    } catch (thrown) {
      sendHttpError(response, toHttpError(thrown, silentLog), systemClock)
    }
  })
  return {
    origin: `http://127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      endpoint[Symbol.dispose]()
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

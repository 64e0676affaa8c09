import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { dirname, join } from 'node:path'
import { text } from 'node:stream/consumers'
import type { Aim } from '../load/orders.ts'
import { ask } from '../targets/ask.ts'
import { stopping } from '../targets/child.ts'
import { mcpAim, startFront } from './front.ts'
import type { StartedPeer } from './peer.ts'

const admin = 'admin@example.com'
const secret = () => `Aa1!${randomBytes(24).toString('hex')}`

/** Starts ContextForge with secrets of this run alone, its store in the folder, and its own rate limit off. */
export async function startContextForge(command: string, folder: string, url: string): Promise<StartedPeer> {
  const env = {
    DATABASE_URL: `sqlite:///${join(folder, 'gateway.db')}`,
    JWT_SECRET_KEY: secret(),
    AUTH_ENCRYPTION_SECRET: secret(),
    PLATFORM_ADMIN_EMAIL: admin,
    PLATFORM_ADMIN_PASSWORD: secret(),
    BASIC_AUTH_PASSWORD: secret(),
    RATE_LIMITING_ENABLED: 'false',
    SSRF_ALLOW_LOCALHOST: 'true',
    SSRF_ALLOW_PRIVATE_NETWORKS: 'true',
    CACHE_TYPE: 'memory',
    LOG_LEVEL: 'ERROR',
    PLUGINS_ENABLED: 'false',
  }
  const token = await adminToken(join(dirname(command), 'python'), folder, env)
  let registered: Promise<string> | undefined
  return startFront({
    command,
    folder,
    env,
    args: (port) => ['--host', '127.0.0.1', '--port', String(port)],
    async aim(port): Promise<Aim> {
      const base = `http://127.0.0.1:${port}`
      const { status } = await ask(`${base}/health`, {})
      if (status !== 200) throw new Error(`its health is ${status}`)
      // Once: whoever tries again and again is locked out.
      registered ??= register(base, token, url)
      return mcpAim(await registered, token)
    },
  })
}

/** By the command that comes with it. */
async function adminToken(python: string, folder: string, env: Record<string, string>): Promise<string> {
  const asked = ['--username', admin, '--exp', '600', '--secret', env.JWT_SECRET_KEY as string, '--admin']
  const args = ['-m', 'mcpgateway.utils.create_jwt_token', ...asked]
  const child = spawn(python, args, {
    cwd: folder,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  child.on('error', () => {})
  stopping(child, python)
  const [said] = await Promise.all([text(child.stdout), once(child, 'close')])
  return said.trim().split('\n').at(-1) ?? ''
}

/** Registers the server and puts its tools into a virtual one; the address of that. */
async function register(base: string, token: string, url: string): Promise<string> {
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${token}` }
  const post = async (path: string, body: object) => {
    const { status, text } = await ask(base + path, { headers, body: JSON.stringify(body) })
    if (status >= 300) throw new Error(`${path}: ${status} ${text.slice(0, 200)}`)
    return JSON.parse(text)
  }
  await post('/gateways', { name: 'bench', url, transport: 'STREAMABLEHTTP' })
  const tools = JSON.parse((await ask(`${base}/tools?limit=0`, { headers })).text) as { id: string }[]
  const server = { name: 'bench', description: '', associated_tools: tools.map(({ id }) => id) }
  const { id } = await post('/servers', { server })
  return `${base}/servers/${id}/mcp`
}

import { join } from 'node:path'
import type { Config } from '../../config/schema.ts'
import { isLoopback } from '../../config/unauthenticated.ts'
import { type Check, type Finding, ok, problem, warning } from './finding.ts'
import { privateFile } from './private-file.ts'
import { quoted } from './words.ts'

/** Shorter ones can be guessed by whoever may try for a while. */
const shortest = 16

/** What callers must show: whether it is kept, safe, and asked for at all where others can come in. */
export const tokenCheck = (config: Config, short: (path: string) => string): Check => ({
  name: 'credentials.token',
  async run() {
    const { token } = config.auth
    if (token === 'none') return openFinding(config)
    if (token === 'generated') return keptFinding(config, short)
    return ok('is given by the configuration')
  },
})

function openFinding({ auth, server: { host } }: Config): Finding {
  if (isLoopback(host)) return ok(`none is asked for; only this machine reaches ${host}`)
  const remedy = 'auth.token: generated'
  const identified = auth.keys.length > 0 || (auth.jwt !== undefined && !auth.jwt.disabled)
  const message = `none is asked for, and server.host is ${host}: whoever reaches this machine may use`
  return identified
    ? warning(`${message} what the default agent may`, remedy)
    : problem(`${message} every tool`, remedy)
}

async function keptFinding({ stores }: Config, short: (path: string) => string): Promise<Finding> {
  const path = join(stores.common, 'token')
  const { finding, text } = await privateFile({ path, shown: short(path), what: 'the token' })
  if (finding) return finding
  if (text === undefined) return ok('is made at the first start')
  if (text.length >= shortest) return ok(`is kept in ${short(path)}, for its owner alone`)
  return problem(`${short(path)} does not hold a token`, `rm ${quoted(path)}   # the next start makes a new one`)
}

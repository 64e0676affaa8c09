import fc from 'fast-check'
import { expect, test } from 'vitest'
import { expand } from './interpolate.ts'
import { brief, project } from './project.fixture.ts'

const filled = (text: string, env: Record<string, string> = {}) => {
  const expansion = expand(text, env)
  return 'text' in expansion ? expansion.text : `fault: ${expansion.fault}`
}

test('every spelling of a variable is filled in', () => {
  const env = { A: 'one', EMPTY: '' }
  expect(filled('${A}', env)).toBe('one')
  expect(filled('${env:A}', env)).toBe('one')
  expect(filled('<${A}|${A}>', env)).toBe('<one|one>')
  expect(filled('${B:-two}', env)).toBe('two')
  expect(filled('${env:B:-two}', env)).toBe('two')
  expect(filled('${B:-}', env)).toBe('')
  expect(filled('${EMPTY:-two}', env)).toBe('two')
  expect(filled('${EMPTY}', env)).toBe('')
})

test('$${ stands for the text itself, and a lone $ is a $', () => {
  expect(filled('$${A}', { A: 'one' })).toBe('${A}')
  expect(filled('$A costs 5$', { A: 'one' })).toBe('$A costs 5$')
  expect(filled('a$${b}${A}', { A: 'one' })).toBe('a${b}one')
})

test('an invalid reference is refused with a hint', () => {
  expect(filled('${A')).toMatch(/no closing }/)
  expect(filled('${input:key}')).toMatch(/editor's prompt/)
  expect(filled('${file:x}')).toMatch(/is not a variable/)
  expect(filled('${command:x}')).toMatch(/is not a variable/)
  expect(filled('${A:-${B}}')).toMatch(/is not a variable/)
  expect(filled('${toString}')).toMatch(/toString is not set/)
})

test('what a variable holds is never expanded again', () => {
  const value = fc.oneof(fc.string(), fc.constantFrom('${A}', '${B}', '$${A}', '${', '${A:-x}'))
  fc.assert(
    fc.property(value, value, (a, b) => {
      expect(filled('${A}', { A: a, B: b })).toBe(a)
      expect(filled('${A}-${B}', { A: a, B: b })).toBe(`${a}-${b}`)
    }),
  )
})

test('text without ${ is never changed', () => {
  fc.assert(
    fc.property(fc.string(), (text) => {
      fc.pre(!text.includes('${'))
      expect(filled(text)).toBe(text)
    }),
  )
})

test('an unset variable is an error that names server, field, file and line', async () => {
  const { problems, at } = await project({
    'toolway.yaml': [
      'mcpServers:',
      '  github:',
      '    command: npx',
      '    env:',
      '      TOKEN: ${GITHUB_TOKEN}',
      '',
    ].join('\n'),
  })
  const found = await problems()
  expect(brief(found)).toEqual([
    '5:14 mcpServers.github.env.TOKEN: the variable GITHUB_TOKEN is not set; set it, or write ${GITHUB_TOKEN:-default}',
  ])
  expect(found[0]?.file).toBe(at('toolway.yaml'))
})

test('variables of a disabled server or section need not be set, whatever they would hold', async () => {
  const { load } = await project({
    'toolway.yaml': `
mcpServers:
  off: { url: "\${URL}", headers: { A: "\${A}" }, idle: "\${IDLE}", session: "\${SESSION}", disabled: true }
  alsoOff: { command: "\${COMMAND}", args: ["\${ARG}"], priority: "\${P}", enabled: false }
auth:
  jwt: { issuer: "\${ISSUER}", audience: "\${AUDIENCE}", jwksUrl: "\${JWKS}", disabled: true }
`,
  })
  const { config } = await load()
  expect(config.mcpServers.off).toMatchObject({ disabled: true, idle: 600_000, session: 'shared', url: '${URL}' })
  expect(config.mcpServers.alsoOff).toMatchObject({ disabled: true, command: '${COMMAND}', priority: 0 })
})

test('a flag that a variable holds decides whether the others must be set', async () => {
  const { load, problems } = await project({
    'toolway.yaml': 'mcpServers: { a: { url: "${URL}", disabled: "${OFF}" } }',
  })
  expect((await load({ env: { OFF: 'true' } })).config.mcpServers.a?.disabled).toBe(true)
  expect(brief(await problems({ env: { OFF: 'false' } }))).toEqual([
    expect.stringContaining('mcpServers.a.url: the variable URL'),
  ])
})

test('a number or a flag may come from a variable', async () => {
  const { load } = await project({
    'toolway.json': '{"server": {"port": "${PORT:-4400}"}, "cache": {"enabled": "${CACHE}", "ttl": "${TTL}"}}',
  })
  const { config } = await load({ env: { CACHE: 'true', TTL: '5m' } })
  expect(config.server.port).toBe(4400)
  expect(config.cache).toMatchObject({ enabled: true, ttl: 300_000 })
})

test('an error never shows what a variable held', async () => {
  const { problems } = await project({
    'toolway.yaml': 'server: { port: "${SECRET_PORT}" }\nnaming: { strategy: "${S}" }',
  })
  const found = await problems({ env: { SECRET_PORT: 'hunter2', S: 'prefx-hunter2' } })
  expect(found.map(({ key }) => key)).toEqual(['server.port', 'naming.strategy'])
  expect(JSON.stringify(found)).not.toContain('hunter2')
})

import { pathToFileURL } from 'node:url'
import { describe, expect, test } from 'vitest'
import { honestPaths, pathAttacks } from '../../../tests/abuse/paths.ts'
import { ToolwayError } from '../../core/errors.ts'
import { compileGuards } from './index.ts'
import { sandbox } from './sandbox.fixture.ts'

describe('F9: guards look at the URIs of resources', () => {
  const check = compileGuards(
    [
      { kind: 'path', arguments: ['path'], roots: ['/data'] },
      { kind: 'sql', arguments: ['sql'], dialect: 'postgres', readOnly: true },
      { kind: 'url', arguments: ['url'], allowPrivate: false },
    ],
    { server: 'all' },
  )!
  const read = async (uri: string) => check({}, uri)

  test.each([
    'file:///etc/passwd',
    'FILE:///etc/passwd',
    ' file:///etc/passwd',
    'fi\tle:///etc/passwd',
    'file:/etc/passwd',
    'file:etc/passwd',
    'file:////etc/passwd',
    'file:\\\\\\etc\\passwd',
    'file://localhost/data/a',
    'file://data/a',
    'file:///data/../etc/passwd',
    'file:///data/%2e%2e/etc/passwd',
    'file:///data%2f..%2f..%2fetc%2fpasswd',
    'file:///data?/../../etc/passwd',
    'file:///database',
    'file:///',
    'file:',
    '/etc/passwd',
    '~/.ssh/id_rsa',
    '../../etc/passwd',
    'c:/windows/win.ini',
  ])('a path outside the roots is refused: %j', async (uri) => {
    await expect(read(uri)).rejects.toMatchObject({
      code: 'INVALID_PATH',
      message: expect.stringContaining('The argument "uri" '),
      details: { server: 'all', rule: 'mcpServers.all.guards[0]' },
    })
  })

  test.each([
    'http://127.0.0.1/',
    'HTTP://127.0.0.1/',
    ' http://127.0.0.1/',
    'ht\ntp://127.0.0.1/',
    'http:127.0.0.1',
    'https://169.254.169.254/latest/meta-data',
    'ws://10.0.0.1/',
    'ftp://8.8.8.8/',
  ])('an address that must not be asked is refused: %j', async (uri) => {
    await expect(read(uri)).rejects.toMatchObject({ code: 'UNSAFE_URL', details: { rule: 'mcpServers.all.guards[2]' } })
  })

  test.each(['file:///data/a\0', 'http://8.8.8.8/\ufffd'])(
    'a URI with a NUL or replacement character is refused: %j',
    async (uri) => {
      await expect(read(uri)).rejects.toThrow('The argument "uri" contains')
    },
  )

  test.each([
    'file:///data/a',
    'file:///data/my%20notes.txt',
    'file:///data/100%25.txt',
    'file:///data/why.txt?line=3',
    'http://8.8.8.8/a?b#c',
  ])('a URI inside the roots or of a public host is read: %j', async (uri) => {
    await read(uri)
  })

  test.each(['notes://../../x', 'postgres://10.0.0.1/db', 'readme', 'urn:file:///etc/passwd', 'git+file:///etc'])(
    'what a scheme of a server means is for the server to say: %j',
    (uri) => {
      expect(check({}, uri)).toBeUndefined()
    },
  )

  test('all path attacks are refused as URIs, also with a query', async () => {
    await using folders = await sandbox()
    const { root, second, fill } = folders
    const guarded = compileGuards([{ kind: 'path', arguments: ['path'], roots: [root, second] }], { server: 'files' })!
    const refused = async (uri: string) => expect(async () => guarded({}, uri), uri).rejects.toThrow(ToolwayError)
    for (const [, path] of pathAttacks) {
      await refused(`file://${fill(path)}`)
      await refused(`file:${fill(path)}`)
    }
    for (const [, path] of honestPaths) await guarded({}, `file://${fill(path)}`)
    for (const name of ['secret-link?x', 'secret-link#x', 'secret-l%69nk'])
      await refused(`${pathToFileURL(root)}/${name}`)
  })
})

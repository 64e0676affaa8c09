import { brotliCompressSync, gzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { entryOf } from '../../../core/call.fixture.ts'
import { systemClock } from '../../../core/clock.ts'
import { silentLog } from '../../../core/log.ts'
import type { Vet } from '../../../egress/guarded-get.ts'
import { retry } from '../../../pipeline/retry.ts'
import { UnsafeUrl, vetUrl } from '../../../policy/guards/url.ts'
import { bodyOf, callOf, refusalOf, runTool } from '../../access.fixture.ts'
import { fetchTool } from './fetch.ts'
import { gives, leads, loopback, site } from './site.fixture.ts'

const config = { maxBytes: 64 * 1024, timeout: 20_000, allowPrivate: false }
/** The real guard, which finds every name on this machine and takes that for a public place. */
const local: Vet = async (text) => {
  const { url } = await vetUrl(text.replace('127.0.0.1', 'site.example'), {
    allowPrivate: false,
    lookup: async () => [{ address: '93.184.215.14', family: 4 }],
  })
  return { url: new URL(url.href.replace('site.example', '127.0.0.1')), addresses: loopback }
}
const fetching = (args: object, vet: Vet = local, more = {}) => runTool(fetchTool({ vet, config }), args, more)

const fetched = async (args: object, vet?: Vet) =>
  bodyOf(await fetching(args, vet)).structuredContent as Record<string, unknown>

describe('fetch', () => {
  test('S2: clients learn that it reaches the outside world', () => {
    expect(fetchTool({ vet: local, config }).definition.annotations).toMatchObject({ openWorldHint: true })
  })

  test('S2: a page comes as readable text, with all that is known of it', async () => {
    await using web = await site({
      '/': gives('text/html; charset=utf-8', '<title>A page</title><h1>Hi</h1><p>See <a href="/more">more</a>.</p>'),
    })
    const body = bodyOf(await fetching({ url: `${web.origin}/` }))
    expect(body.structuredContent).toEqual({
      url: `${web.origin}/`,
      status: 200,
      contentType: 'text/html; charset=utf-8',
      title: 'A page',
      text: `# Hi\n\nSee [more](${web.origin}/more).`,
      truncated: false,
      total_chars: `# Hi\n\nSee [more](${web.origin}/more).`.length,
    })
    expect(body.content?.[0]).toEqual({ type: 'text', text: `A page\n\n# Hi\n\nSee [more](${web.origin}/more).` })
    expect(web.requests[0]?.headers).toMatchObject({ 'user-agent': 'toolway' })
    expect(web.requests[0]?.headers.cookie ?? web.requests[0]?.headers.authorization).toBeUndefined()
  })

  test('S2: JSON and other text stay as they are, and so does the source of a page with raw', async () => {
    const html = '<p>a</p><script>b</script>'
    await using web = await site({
      '/json': gives('application/vnd.x+json', '{"a": [1,\n2]}'),
      '/csv': gives('text/csv', 'a,b\n1,2\n'),
      '/html': gives('text/html', html),
      '/none': gives('', 'plain'),
    })
    expect((await fetched({ url: `${web.origin}/json` })).text).toBe('{"a": [1,\n2]}')
    expect((await fetched({ url: `${web.origin}/csv` })).text).toBe('a,b\n1,2\n')
    expect((await fetched({ url: `${web.origin}/html`, raw: true })).text).toBe(html)
    expect((await fetched({ url: `${web.origin}/none` })).text).toBe('plain')
  })

  test('S2: a long text comes in parts that make up the whole, no character cut in two', async () => {
    // The parts begin and end at every place of the repeated text.
    const whole = 'ab😀'.repeat(12)
    await using web = await site({ '/': gives('text/plain; charset=utf-8', whole) })
    let text = ''
    for (let start: number | undefined = 0; start !== undefined; ) {
      const part: Record<string, unknown> = await fetched({ url: `${web.origin}/`, max_chars: 7, start })
      expect(part.truncated).toBe(part.next_start !== undefined)
      expect(String(part.text).isWellFormed()).toBe(true)
      text += part.text
      start = part.next_start as number | undefined
    }
    expect(text).toBe(whole)
    expect((await fetched({ url: `${web.origin}/`, start: 10_000 })).text).toBe('')
  })

  test('S2: no more is read than allowed, also of what was compressed', async () => {
    const large = 'x'.repeat(10_000_000)
    await using web = await site({
      '/plain': gives('text/plain', large),
      '/bomb': gives('text/plain', gzipSync(large), 200, { 'content-encoding': 'gzip' }),
      '/br': gives('text/plain', brotliCompressSync('small'), 200, { 'content-encoding': 'br' }),
      '/odd': gives('text/plain', 'x', 200, { 'content-encoding': 'zork' }),
      '/broken': gives('text/plain', 'no gzip', 200, { 'content-encoding': 'gzip' }),
    })
    for (const path of ['/plain', '/bomb']) {
      const { total_chars, truncated } = await fetched({ url: web.origin + path, max_chars: 100_000 })
      expect([total_chars, truncated]).toEqual([config.maxBytes, true])
    }
    expect((await fetched({ url: `${web.origin}/br` })).text).toBe('small')
    expect((await refusalOf(fetching({ url: `${web.origin}/odd` }))).message).toContain('zork')
    expect((await refusalOf(fetching({ url: `${web.origin}/broken` }))).code).toBe('SERVER_UNAVAILABLE')
  })

  test.each([
    ['a header', 'text/plain; charset=iso-8859-1', Buffer.from('gr\xfc\xdf', 'latin1'), 'grüß'],
    ['a mark', 'text/plain', Buffer.from('\ufeffhä', 'utf16le'), 'hä'],
    ['its own word', 'text/html', Buffer.from('<meta charset="windows-1251"><p>\xcf\xf0', 'latin1'), 'Пр'],
    ['XML', 'text/xml', Buffer.from('<?xml version="1.0" encoding="latin1"?>\xe4', 'latin1'), 'ä'],
    ['an unknown name', 'text/plain; charset=klingon', Buffer.from('ä'), 'ä'],
  ])('S2: the encoding is taken from %s', async (_, type, bytes, text) => {
    await using web = await site({ '/': gives(type, bytes) })
    expect(String((await fetched({ url: `${web.origin}/` })).text)).toContain(text)
  })

  test('security: ESC, direction and hidden characters do not get through', async () => {
    const hostile =
      'a\x1b[31mred\x1b[0m \u202eevil\u202c x\u200by \u{e0041}\u{e0042} \ufeff👩‍💻 ok\x07\x1b]0;title\x07!'
    await using web = await site({ '/': gives('text/plain; charset=utf-8', hostile) })
    expect((await fetched({ url: `${web.origin}/` })).text).toBe('ared evil xy  👩‍💻 ok!')
  })

  test('S2: a small image comes as an image, by its bytes and not by its name', async () => {
    const png = Buffer.from('89504e470d0a1a0a0000000d', 'hex')
    await using web = await site({
      '/png': gives('text/html', png),
      '/large': gives('image/png', Buffer.concat([png, Buffer.alloc(config.maxBytes)])),
    })
    const body = bodyOf(await fetching({ url: `${web.origin}/png` }))
    expect(body.content).toEqual([{ type: 'image', data: png.toString('base64'), mimeType: 'image/png' }])
    expect((await refusalOf(fetching({ url: `${web.origin}/large` }))).message).toContain('too large')
  })

  test('S2: a response that is neither text nor an image is refused with its type', async () => {
    await using web = await site({
      '/pdf': gives('application/octet-stream', '%PDF-1.7'),
      '/zip': gives('application/zip', 'PK'),
      '/bytes': gives('', Buffer.from([1, 0, 2])),
    })
    expect((await refusalOf(fetching({ url: `${web.origin}/pdf` }))).message).toContain('application/pdf')
    expect((await refusalOf(fetching({ url: `${web.origin}/zip` }))).message).toContain('application/zip')
    expect((await refusalOf(fetching({ url: `${web.origin}/bytes` }))).message).toContain('neither text nor an image')
  })

  test('S2: an answer such as 404 is an error that says what the server said', async () => {
    await using web = await site({})
    const result = await fetching({ url: `${web.origin}/gone` })
    expect(result.isError).toBe(true)
    expect(bodyOf(result).content?.[0]).toEqual({ type: 'text', text: 'HTTP 404\n\nnothing here' })
  })
})

describe('fetch, guarded', () => {
  test('F9: redirects are followed on the same origin, each hop vetted', async () => {
    await using web = await site({ '/a': leads('/b'), '/b': leads('c?x=1', 308), '/c': gives('text/plain', 'there') })
    const vetted: string[] = []
    const vet: Vet = (url) => {
      vetted.push(url)
      return local(url)
    }
    expect(await fetched({ url: `${web.origin}/a` }, vet)).toMatchObject({ text: 'there', url: `${web.origin}/c?x=1` })
    expect(vetted).toEqual(['/a', '/b', '/c?x=1'].map((path) => web.origin + path))
  })

  test('F9: a redirect to another origin is refused and names it, and nothing is asked there', async () => {
    await using other = await site({ '/secret': gives('text/plain', 'secret') })
    await using web = await site({
      '/port': leads(`${other.origin}/secret?a=1`),
      '/user': leads(`http://me:pass@127.0.0.1:${other.port}/secret`),
      '/file': leads('file:///etc/passwd'),
      '/nonsense': leads('http://[broken'),
      '/loop': leads('/loop'),
    })
    const port = await refusalOf(fetching({ url: `${web.origin}/port` }))
    expect(port.code).toBe('UNSAFE_URL')
    expect(port.message).toContain(`${other.origin}/secret?a=1`)
    expect((await refusalOf(fetching({ url: `${web.origin}/user` }))).message).not.toContain('pass')
    for (const path of ['/file', '/nonsense']) {
      expect((await refusalOf(fetching({ url: web.origin + path }))).code).toBe('UNSAFE_URL')
    }
    expect((await refusalOf(fetching({ url: `${web.origin}/loop` }))).message).toContain('more than 5 times')
    expect(other.asked).toEqual([])
  })

  test.each([
    'http://127.0.0.1/',
    'http://localhost/',
    'http://[::ffff:10.0.0.1]/',
    'http://[64:ff9b::7f00:1]/',
    'http://[2002:7f00:1::]/',
    'http://169.254.169.254/latest/meta-data',
    'http://user:pass@example.com/',
    'file:///etc/passwd',
    'gopher://example.com/',
    'http://0x7f.1/',
  ])('F9: %s is refused before anything is sent', async (url) => {
    const vet: Vet = (text) => vetUrl(text, { allowPrivate: false })
    expect((await refusalOf(fetching({ url }, vet))).code).toBe('UNSAFE_URL')
  })

  test('F9: the connection goes to the vetted address, whatever the name means by then', async () => {
    await using web = await site({ '/': (request, response) => response.end(`for ${request.headers.host}`) })
    let lookups = 0
    const rebinding: Vet = (text) =>
      vetUrl(text, {
        allowPrivate: true,
        lookup: async () => [{ address: lookups++ === 0 ? '127.0.0.1' : '203.0.113.7', family: 4 }],
      })
    // The name cannot be found by anybody else.
    const { text } = await fetched({ url: `http://rebinding.invalid:${web.port}/` }, rebinding)
    expect(text).toBe(`for rebinding.invalid:${web.port}`)
    expect(lookups).toBe(1)
  })

  test('F9: the error has the reason of a refusal, but not the URL', async () => {
    const vet: Vet = () => Promise.reject(new UnsafeUrl('leads to a private or reserved address'))
    expect((await refusalOf(fetching({ url: 'http://x.example/?token=hunter2' }, vet))).message).toBe(
      'The URL leads to a private or reserved address; use an http or https URL of a public host.',
    )
  })

  test('F10: cancelling closes the connection, before the response and in the middle of it', async () => {
    const { promise: closed, resolve } = Promise.withResolvers<void>()
    const { promise: begun, resolve: begin } = Promise.withResolvers<void>()
    await using web = await site({
      '/never': (_request, response) => {
        response.on('close', resolve)
        begin()
      },
    })
    const stop = new AbortController()
    const fetch = fetching({ url: `${web.origin}/never` }, local, { signal: stop.signal })
    await begun
    stop.abort(new Error('enough'))
    await expect(fetch).rejects.toThrow('enough')
    await closed
  })

  test('T1: an unsupported encoding is named', async () => {
    await using web = await site({
      '/': (_request, response) => response.setHeader('content-encoding', 'zip').end('x'),
    })
    expect((await refusalOf(fetched({ url: `${web.origin}/` }))).message).toContain('unsupported Content-Encoding zip')
  })

  test('T1: the error of an unreachable host names only the host', async () => {
    const gone = await site({})
    await gone[Symbol.asyncDispose]()
    const refusal = await refusalOf(fetching({ url: `${gone.origin}/path?token=hunter2` }))
    expect(refusal.code).toBe('SERVER_UNAVAILABLE')
    expect(refusal.message).toBe(
      `127.0.0.1:${gone.port} could not be read (ECONNREFUSED). Check the URL, or try again later.`,
    )
  })
})

test('F12: a URL that redirects too often is not fetched again', async () => {
  await using web = await site({ '/loop': leads('/loop') })
  const tool = fetchTool({ vet: local, config })
  const repeated = retry({ attempts: 2, budget: 1, backoff: 1, onTimeout: false, clock: systemClock, log: silentLog })
  const entry = entryOf({ traits: { readOnly: tool.readOnly, idempotent: tool.idempotent, timeoutMs: 30_000 } })
  const call = callOf(entry, { url: `${web.origin}/loop` })
  const error = await refusalOf(repeated(call, () => runTool(tool, { url: `${web.origin}/loop` })))
  expect(error.message).toMatch(/more than 5 times/)
  expect(web.asked).toHaveLength(6)
})

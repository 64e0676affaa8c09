import { describe, expect, test } from 'vitest'
import { refusalOf } from '../access.fixture.ts'
import { over } from './inference.fixture.ts'
import { png, says, sends, wav } from './model-server.fixture.ts'

describe('vision', () => {
  test('F17: images are sent to the model as data URLs with their real type', async () => {
    await using model = await over({ '/chat/completions': says('A cat.') })
    const data = png.toString('base64')
    const body = await model.run('vision', {
      prompt: 'What?',
      images: [{ data }, { data: `data:image/jpeg;base64,${data}` }],
    })
    expect(body.content).toEqual([{ type: 'text', text: 'A cat.' }])
    const url = `data:image/png;base64,${data}`
    expect(model.asked[0]?.json.messages).toEqual([
      {
        role: 'user',
        content: [
          { type: 'text', text: 'What?' },
          { type: 'image_url', image_url: { url } },
          { type: 'image_url', image_url: { url } },
        ],
      },
    ])
  })

  test('F9: an image behind a URL is fetched here, from a vetted address', async () => {
    await using model = await over(
      {
        '/chat/completions': says('ok'),
        '/cat.png': sends('image/png', png),
        '/page': sends('text/html', Buffer.from('x')),
      },
      { vet: async (url) => ({ url: new URL(url), addresses: [{ address: '127.0.0.1', family: 4 }] }) },
    )
    await model.run('vision', { images: [{ url: `${model.origin}/cat.png` }] })
    expect(JSON.stringify(model.asked.at(-1)?.json)).toContain(`data:image/png;base64,${png.toString('base64')}`)
    for (const [path, why] of [
      ['/page', 'is not an image'],
      ['/gone', 'HTTP 404'],
    ]) {
      const refusal = await refusalOf(model.run('vision', { images: [{ url: model.origin + path }] }))
      expect(refusal.message).toContain(why)
    }
  })

  test.each([
    ['a private address', { url: 'http://10.0.0.1/' }, 'UNSAFE_URL'],
    ['no base64', { data: '§' }, 'INVALID_ARGUMENTS'],
    ['no image', { data: wav.toString('base64') }, 'INVALID_ARGUMENTS'],
    ['too much', { data: Buffer.alloc(2_000).toString('base64') }, 'INVALID_ARGUMENTS'],
    ['nothing', {}, 'INVALID_ARGUMENTS'],
    ['both', { url: 'https://example.com', data: '' }, 'INVALID_ARGUMENTS'],
  ])('F17: %s is refused before the model is asked', async (_, image, code) => {
    await using model = await over({}, { inference: { maxBytes: '1KiB' } })
    expect((await refusalOf(model.run('vision', { images: [image] }))).code).toBe(code)
    expect(model.asked).toEqual([])
  })
})

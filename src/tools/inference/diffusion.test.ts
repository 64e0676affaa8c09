import { describe, expect, test } from 'vitest'
import { refusalOf } from '../access.fixture.ts'
import { over } from './inference.fixture.ts'
import { answers, png, type Reply, sends } from './model-server.fixture.ts'

describe('diffusion', () => {
  const image = { b64_json: png.toString('base64') }

  test('F17: images come as images', async () => {
    await using model = await over({ '/images/generations': answers(200, { data: [image, image] }) })
    const body = await model.run('diffusion', { prompt: 'a cat', n: 2, size: '64x64' })
    expect(body.content).toEqual(Array(2).fill({ type: 'image', data: image.b64_json, mimeType: 'image/png' }))
    expect(body.structuredContent).toEqual({
      model: 'local',
      images: Array(2).fill({ mimeType: 'image/png', bytes: png.length }),
    })
    const wishes = { model: 'm', prompt: 'a cat', n: 2, size: '64x64', response_format: 'b64_json' }
    expect(model.asked.map(({ json }) => json)).toEqual([wishes])
  })

  test('F17: a server that knows no response_format is asked without it', async () => {
    const picky: Reply = (asked, response) =>
      'response_format' in asked.json
        ? answers(400, { error: { message: "Unknown parameter: 'response_format'." } })(asked, response)
        : answers(200, { data: [image] })(asked, response)
    await using model = await over({ '/images/generations': picky })
    expect((await model.run('diffusion', { prompt: 'a cat' })).content).toHaveLength(1)
  })

  test('F9: an image that is pointed to is taken from the server itself, or vetted like any address', async () => {
    await using model = await over({
      '/images/generations': ({ json }, response) =>
        answers(200, { data: [{ url: json.prompt }] })(undefined as never, response),
      '/files/1.png': sends('image/png', png),
    })
    expect((await model.run('diffusion', { prompt: '/files/1.png' })).content).toHaveLength(1)
    expect((await refusalOf(model.run('diffusion', { prompt: 'http://169.254.169.254/x' }))).code).toBe('UNSAFE_URL')
    expect(await refusalOf(model.run('diffusion', { prompt: '/files/2.png' }))).toMatchObject({
      code: 'SERVER_UNAVAILABLE',
      details: { requestOnly: true },
    })
    expect(await refusalOf(model.run('diffusion', { prompt: 'http://[' }))).toMatchObject({
      message: expect.stringContaining('did not return images'),
      details: { requestOnly: true },
    })
  })
})

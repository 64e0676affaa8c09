import { describe, expect, test } from 'vitest'
import { refusalOf } from '../access.fixture.ts'
import { key, over } from './inference.fixture.ts'
import { answers, mp3, scriptedServer, sends, wav } from './model-server.fixture.ts'

describe('speech', () => {
  test('F17: text becomes audio, whose type is read from its bytes', async () => {
    await using model = await over({ '/audio/speech': sends('application/octet-stream', mp3) })
    const body = await model.run('speech', { text: 'Hello', voice: 'echo', format: 'wav', speed: 1.5 })
    expect(body).toEqual({
      content: [{ type: 'audio', data: mp3.toString('base64'), mimeType: 'audio/mpeg' }],
      structuredContent: { model: 'local', mimeType: 'audio/mpeg', bytes: mp3.length },
    })
    const [asked] = model.asked
    expect(asked?.json).toEqual({ model: 'm', input: 'Hello', voice: 'echo', response_format: 'wav', speed: 1.5 })
    expect(asked?.headers.authorization).toBe(`Bearer ${key}`)
  })

  test('F17: a recording is transcribed by the model that is configured for it', async () => {
    await using writer = await scriptedServer({ '/audio/transcriptions': answers(200, { text: 'Hello you' }) })
    await using model = await over(
      {},
      {
        written: { writer: { kind: 'openai', baseUrl: `${writer.baseUrl}?v=2`, model: 'whisper' } },
        inference: { transcription: 'writer' },
      },
    )
    const body = await model.run('speech', { audio: wav.toString('base64'), language: 'en' })
    expect(body.content).toEqual([{ type: 'text', text: 'Hello you' }])
    expect(body.structuredContent).toEqual({ model: 'writer', text: 'Hello you' })
    const [asked] = writer.asked
    expect(asked?.path).toBe('/v1/audio/transcriptions?v=2')
    // Read by a parser that is not ours.
    const form = await new Response(new Uint8Array(asked?.body ?? []), {
      headers: { 'content-type': String(asked?.headers['content-type']) },
    }).formData()
    expect([form.get('model'), form.get('language'), form.get('response_format')]).toEqual(['whisper', 'en', 'json'])
    const file = form.get('file') as File
    expect([file.name, file.type, Buffer.from(await file.arrayBuffer())]).toEqual(['audio.wav', 'audio/wav', wav])
  })

  test('F17: an answer without audio or text is refused', async () => {
    await using model = await over({
      '/audio/speech': sends('text/html', Buffer.from('<p>')),
      '/audio/transcriptions': answers(200, { words: [] }),
    })
    const noAudio = await refusalOf(model.run('speech', { text: 'x' }))
    expect(noAudio.message).toContain('did not return audio')
    expect(noAudio).toMatchObject({ details: { requestOnly: true } })
    const audio = wav.toString('base64')
    expect((await refusalOf(model.run('speech', { audio }))).message).toContain('did not return text')
    expect((await refusalOf(model.run('speech', { audio, text: 'x' }))).message).toContain('either "text"')
    expect((await refusalOf(model.run('speech', {}))).message).toContain('either "text"')
  })
})

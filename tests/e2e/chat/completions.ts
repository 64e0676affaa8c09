import { rawRequest } from '../../fixtures/raw-http.ts'
import type { Endpoint } from '../../fixtures/toolway.ts'

/** An answer of `POST /v1/chat/completions`, whether it came whole or in pieces. */
export interface Completed {
  readonly text: string
  readonly finish: string
  readonly usage: { readonly prompt_tokens: number; readonly completion_tokens: number } | undefined
  /** The tools that ran, by their served names. */
  readonly ran: readonly string[]
  readonly notes: readonly string[]
  /** In how many pieces the text came. */
  readonly pieces: number
  readonly model: string
}

interface Choice {
  readonly delta?: { readonly content?: string }
  readonly message?: { readonly content?: string }
  readonly finish_reason?: string | null
}

interface Shape {
  readonly model: string
  readonly choices: readonly Choice[]
  readonly usage?: Completed['usage'] | null
  readonly toolway?: {
    readonly kind?: string
    readonly name?: string
    readonly notes?: readonly string[]
    readonly calls?: readonly { readonly name: string }[]
  }
}

/** Asks as any program would, with nothing but HTTP. */
export async function complete(toolway: Endpoint, body: { readonly stream: boolean; readonly messages: object }) {
  const { status, text } = await rawRequest(toolway.url, {
    path: '/v1/chat/completions',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${toolway.token}` },
    body: JSON.stringify({ model: 'local', ...body, ...(body.stream && { stream_options: { include_usage: true } }) }),
  })
  if (status !== 200) throw new Error(`${status}: ${text}`)
  return body.stream ? fromPieces(text) : fromWhole(JSON.parse(text))
}

function fromWhole({ choices: [choice], usage, toolway, model }: Shape): Completed {
  return {
    text: choice?.message?.content ?? '',
    finish: choice?.finish_reason ?? '',
    usage: usage ?? undefined,
    ran: toolway?.calls?.map(({ name }) => name) ?? [],
    notes: toolway?.notes ?? [],
    pieces: 1,
    model,
  }
}

function fromPieces(stream: string): Completed {
  const events = stream.split('\n\n').flatMap((event) => (event.startsWith('data: ') ? [event.slice(6)] : []))
  if (events.pop() !== '[DONE]') throw new Error(`a stream without an end: ${stream}`)
  const chunks = events.map((event): Shape => JSON.parse(event))
  const texts = chunks.flatMap(({ choices: [choice] }) => (choice?.delta?.content ? [choice.delta.content] : []))
  return {
    text: texts.join(''),
    finish: chunks.flatMap(({ choices: [choice] }) => choice?.finish_reason ?? [])[0] ?? '',
    usage: chunks.map(({ usage }) => usage).findLast((usage) => usage) ?? undefined,
    ran: chunks.flatMap(({ toolway }) => (toolway?.kind === 'call' && toolway.name ? [toolway.name] : [])),
    notes: chunks.flatMap(({ toolway }) => (toolway?.kind === 'end' ? (toolway.notes ?? []) : [])),
    pieces: texts.length,
    model: chunks[0]?.model ?? '',
  }
}

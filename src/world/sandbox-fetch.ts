import type { Clock } from '../core/clock.ts'
import { HostRefusal } from '../core/executor.ts'
import { vetUrl } from '../policy/guards/url.ts'
import type { SandboxFetch } from '../sandbox/own-calls.ts'
import { readBody } from '../tools/native/fetch/body.ts'
import { pinned } from '../tools/native/fetch/pinned.ts'

/** Most of an answer that a program gets. */
const maxBytes = 1024 * 1024

/**
 * Reaches hosts of `sandbox.allowNetwork` on behalf of programs. A host that the operator names may be a private one; one
 * that only a pattern fits may not, since anybody can give a name of theirs an address of ours.
 */
export const sandboxFetch =
  (allowed: readonly string[], clock: Clock): SandboxFetch =>
  async ({ url: asked, method, headers, body }, signal) => {
    const allowPrivate = allowed.includes(new URL(asked).hostname)
    const { url, addresses } = await vetUrl(asked, { allowPrivate, clock }).catch((thrown: Error) => {
      throw new HostRefusal('UNSAFE_URL', `The URL ${thrown.message}.`)
    })
    await using client = await pinned(url, addresses)
    try {
      const path = url.pathname + url.search
      const answer = await client.request({ method: method as 'GET', path, headers, body: body ?? null, signal })
      answer.body.on('error', () => {})
      const { bytes } = await readBody(answer.body, String(answer.headers['content-encoding'] ?? ''), maxBytes)
      const told = Object.entries(answer.headers).map(([name, value]) => [name, [value].flat().join(', ')])
      return { status: answer.statusCode, headers: Object.fromEntries(told), body: bytes.toString() }
    } catch (thrown) {
      if (signal.aborted) throw signal.reason
      throw new HostRefusal('SERVER_UNAVAILABLE', `${url.host} could not be reached (${(thrown as Error).message}).`)
    }
  }

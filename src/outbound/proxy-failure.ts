import type { WebProxy } from './proxy.ts'

/** The way to a server ends at the proxy; what it did and what to do about that is the message. */
export class ProxyFailure extends Error {
  override readonly name = 'ProxyFailure'
  readonly code = 'PROXY'
}

/** Why there is no way through a proxy: there is none to the proxy itself, or it says nothing that can be understood. */
export function proxyUnreachable({ origin, variable }: WebProxy, to: URL, cause: Error): Error {
  const { code: reason } = cause as NodeJS.ErrnoException
  // It is not the proxy where we have closed the connection ourselves.
  if (cause instanceof ProxyFailure || reason === undefined) return cause
  const advice = `Check ${variable}, or put ${to.hostname} into NO_PROXY.`
  return new ProxyFailure(`the proxy ${origin} cannot be reached or does not answer (${reason}). ${advice}`, { cause })
}

/** The proxy answered, and does not pass us on. */
export function proxyRefused({ origin, variable, authorization }: WebProxy, to: URL, status: number): ProxyFailure {
  if (status === 407) {
    const [does, advice] = authorization
      ? ['refuses the user and password', `Correct them in ${variable}`]
      : ['wants a user and a password', `Put them into ${variable}, in front of its host: USER:PASSWORD@HOST`]
    return new ProxyFailure(`the proxy ${origin} ${does} (HTTP 407). ${advice}.`)
  }
  const [does, advice] =
    status >= 500
      ? ['does not reach', 'Check that it runs and that its address is right']
      : ['does not allow', 'Ask whoever runs the proxy to allow it']
  return new ProxyFailure(
    `the proxy ${origin} ${does} ${to.host} (HTTP ${status}). ${advice}, or put ${to.hostname} into NO_PROXY.`,
  )
}

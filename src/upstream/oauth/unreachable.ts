import { ToolwayError } from '../../core/errors.ts'
import { ProxyFailure } from '../../outbound/proxy-failure.ts'
import { NoAnswer } from '../transports/channel.ts'
import { OAuthProblem } from './problem.ts'

/** Nobody answered at an address; it may be a proxy on the way that did not let us through. */
export function unreachable({ origin }: URL, thrown: unknown): OAuthProblem {
  const cause = thrown instanceof NoAnswer ? thrown.cause : thrown
  const { code, name } = cause as NodeJS.ErrnoException
  const told = cause instanceof ProxyFailure || cause instanceof ToolwayError
  const why = told ? `: ${cause.message.replace(/\.$/, '')}` : ` (${code ?? name})`
  return new OAuthProblem(`${origin} cannot be reached${why}`, { unreachable: true, cause: thrown })
}

import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Identity } from '../authenticate/index.ts'
import { Refusal, rpc, wrongMethod } from '../refusal.ts'
import type { Credentials } from './credentials.ts'

/** What a scraper is answered, in the format that its Accept header asks for. */
export type MetricsOf = (accept: string | undefined) => Scraped | Promise<Scraped>

interface Scraped {
  readonly body: string
  readonly contentType: string
}

/** GET /metrics. */
export async function answerMetrics(
  request: IncomingMessage,
  response: ServerResponse,
  credentials: Credentials,
  metrics: MetricsOf | undefined,
): Promise<void> {
  if (request.method !== 'GET' && request.method !== 'HEAD') throw wrongMethod(request.method, 'GET, HEAD')
  const { identity } = await credentials.admit(request)
  if (!metrics) throw new Refusal(404, rpc.request, 'There are no metrics here: telemetry.metrics is false.')
  if (!maySee(identity)) {
    const sentence =
      'Metrics tell of every agent: they need an admin credential, or one that may act as every agent (toolway keys create --agent "*").'
    throw Refusal.of('DENIED_BY_POLICY', sentence, { rule: 'telemetry.metrics' })
  }
  const { body, contentType } = await metrics(request.headers.accept)
  response.writeHead(200, { 'Content-Type': contentType, 'Content-Length': Buffer.byteLength(body) }).end(body)
}

/** Who could look at every agent anyway; and everybody, where the operator asks nobody for a credential. */
const maySee = ({ authenticated, admin, agents }: Identity): boolean => !authenticated || admin || agents === '*'

import type { Config } from '../../config/schema.ts'
import { decodePercent } from '../../lib/url.ts'
import { everything, type TraceSampling, type TraceSettings } from './call-spans.ts'
import type { OtlpDelivery } from './otlp-client.ts'

export interface TraceChoice {
  readonly settings: TraceSettings | undefined
  /** Warnings about requested settings that cannot be applied. */
  readonly warnings: readonly string[]
}

/** The settings for traces. The configuration takes precedence over OpenTelemetry's environment variables. */
export function traceSettings(config: Config['telemetry']['traces'], env: OtelEnvironment): TraceChoice {
  const warnings: string[] = []
  const written = config ? (config.disabled ? undefined : forTraces(config.otlp)) : endpointOf(env)
  const url = written === undefined ? undefined : addressOf(written, warnings)
  if (url === undefined) return { settings: undefined, warnings }
  const delivery = deliveryOf(env, warnings)
  if (delivery === undefined) return { settings: undefined, warnings }
  const headers = {
    ...pairs(variable(env, 'OTEL_EXPORTER_OTLP_HEADERS')),
    ...pairs(variable(env, 'OTEL_EXPORTER_OTLP_TRACES_HEADERS')),
  }
  const resource = pairs(variable(env, 'OTEL_RESOURCE_ATTRIBUTES'))
  const name = variable(env, 'OTEL_SERVICE_NAME') ?? resource['service.name'] ?? 'toolway'
  const sampling = samplingOf(env, warnings)
  const unused = unusedVariables(env)
  if (unused.length > 0) warnings.push(`Toolway does not use these variables of OpenTelemetry: ${unused.join(', ')}.`)
  return { settings: { url, headers, resource: { ...resource, 'service.name': name }, sampling, delivery }, warnings }
}

/** How spans are sent; undefined if Toolway cannot send them so. */
function deliveryOf(env: OtelEnvironment, warnings: string[]): OtlpDelivery | undefined {
  const ofTraces = (name: string) =>
    variable(env, `OTEL_EXPORTER_OTLP_TRACES_${name}`) ?? variable(env, `OTEL_EXPORTER_OTLP_${name}`)
  const protocol = ofTraces('PROTOCOL') ?? 'http/protobuf'
  if (protocol === 'http/json')
    warnings.push('Traces are sent as http/protobuf, not as OTEL_EXPORTER_OTLP_PROTOCOL says.')
  else if (protocol !== 'http/protobuf') {
    const advice = 'Toolway exports traces over HTTP: set it to http/protobuf'
    warnings.push(`Traces are off: OTEL_EXPORTER_OTLP_PROTOCOL is ${protocol.slice(0, 50)}. ${advice}.`)
    return undefined
  }
  const compression = ofTraces('COMPRESSION') ?? 'none'
  if (compression !== 'gzip' && compression !== 'none')
    warnings.push('OTEL_EXPORTER_OTLP_COMPRESSION must be gzip or none: traces are not compressed.')
  const timeoutMs = Number(ofTraces('TIMEOUT') ?? defaultTimeoutMs)
  const isValid = Number.isInteger(timeoutMs) && timeoutMs > 0 && timeoutMs <= maxTimeoutMs
  if (!isValid) warnings.push('OTEL_EXPORTER_OTLP_TIMEOUT must be in milliseconds, at most 600000: it is 10000.')
  return { gzip: compression === 'gzip', timeoutMs: isValid ? timeoutMs : defaultTimeoutMs }
}

const defaultTimeoutMs = 10_000
const maxTimeoutMs = 600_000

/** The variables that Toolway uses, without `OTEL_`. Each of the exporter's also exists for traces alone. */
const usedVariables: ReadonlySet<string> = new Set([
  ...['SDK_DISABLED', 'SERVICE_NAME', 'RESOURCE_ATTRIBUTES', 'TRACES_SAMPLER', 'TRACES_SAMPLER_ARG'],
  ...['ENDPOINT', 'HEADERS', 'PROTOCOL', 'COMPRESSION', 'TIMEOUT'].flatMap((name) => [
    `EXPORTER_OTLP_${name}`,
    `EXPORTER_OTLP_TRACES_${name}`,
  ]),
])

/** Variables that somebody set for an effect that they do not have here. */
const unusedVariables = (env: OtelEnvironment): string[] =>
  Object.keys(env).filter((name) => {
    const value = variable(env, name)
    const isDefault = value === 'none' || (name === 'OTEL_TRACES_EXPORTER' && value === 'otlp')
    return name.startsWith('OTEL_') && value !== undefined && !isDefault && !usedVariables.has(name.slice(5))
  })

function endpointOf(env: OtelEnvironment): string | undefined {
  const common = variable(env, 'OTEL_EXPORTER_OTLP_ENDPOINT')
  // The endpoint for traces is used unchanged; the path for traces is appended only to the common endpoint.
  const endpoint = variable(env, 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT') ?? (common && forTraces(common))
  const isOff = variable(env, 'OTEL_SDK_DISABLED') === 'true' || variable(env, 'OTEL_TRACES_EXPORTER') === 'none'
  return isOff ? undefined : endpoint
}

function forTraces(endpoint: string): string {
  if (!URL.canParse(endpoint)) return endpoint
  const url = new URL(endpoint)
  const path = url.pathname.replace(/\/+$/, '')
  url.pathname = path.endsWith('/v1/traces') ? path : `${path}/v1/traces`
  return url.href
}

function addressOf(written: string, warnings: string[]): string | undefined {
  if (URL.canParse(written) && /^https?:$/.test(new URL(written).protocol)) return written
  warnings.push('Traces are off: the OTLP endpoint must be a URL that starts with http:// or https://.')
  return undefined
}

function samplingOf(env: OtelEnvironment, warnings: string[]): TraceSampling {
  const name = variable(env, 'OTEL_TRACES_SAMPLER') ?? 'parentbased_always_on'
  const parentBased = name.startsWith('parentbased_')
  const kind = parentBased ? name.slice('parentbased_'.length) : name
  if (kind === 'always_on') return { parentBased, ratio: 1 }
  if (kind === 'always_off') return { parentBased, ratio: 0 }
  if (kind === 'traceidratio') return { parentBased, ratio: ratioOf(env, warnings) }
  warnings.push(`OTEL_TRACES_SAMPLER names an unknown sampler (${name.slice(0, 50)}): every trace is recorded.`)
  return everything
}

function ratioOf(env: OtelEnvironment, warnings: string[]): number {
  const written = variable(env, 'OTEL_TRACES_SAMPLER_ARG') ?? '1'
  const ratio = Number(written)
  if (ratio >= 0 && ratio <= 1) return ratio
  warnings.push('OTEL_TRACES_SAMPLER_ARG must be a number from 0 to 1: every trace is recorded.')
  return 1
}

export type OtelEnvironment = Readonly<Record<string, string | undefined>>

/** A variable's value. OpenTelemetry treats an empty variable as unset. */
const variable = (env: OtelEnvironment, name: string): string | undefined => env[name]?.trim() || undefined

/** Parses percent-encoded pairs such as `key=value,key2=value2` (headers, resource attributes). Skips invalid ones. */
function pairs(list: string | undefined): Record<string, string> {
  const found: Record<string, string> = {}
  for (const pair of (list ?? '').split(',')) {
    const sign = pair.indexOf('=')
    const key = decodePercent(pair.slice(0, Math.max(sign, 0)).trim())
    if (sign > 0 && key !== '') found[key] = decodePercent(pair.slice(sign + 1).trim())
  }
  return found
}

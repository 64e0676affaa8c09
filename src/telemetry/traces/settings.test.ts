import { describe, expect, test } from 'vitest'
import { traceSettings } from './settings.ts'

const otlp = 'http://collector:4318'
const urlOf = (...given: Parameters<typeof traceSettings>) => traceSettings(...given).settings?.url

describe('F16: whether traces are on, and where they go', () => {
  test('they are off where nothing says otherwise', () => {
    expect(traceSettings(undefined, {})).toEqual({ settings: undefined, warnings: [] })
  })

  test.each([
    ['http://collector:4318', 'http://collector:4318/v1/traces'],
    ['http://collector:4318/', 'http://collector:4318/v1/traces'],
    ['https://vendor.example/otlp', 'https://vendor.example/otlp/v1/traces'],
    ['https://vendor.example/otlp?key=1', 'https://vendor.example/otlp/v1/traces?key=1'],
    ['http://collector:4318/v1/traces', 'http://collector:4318/v1/traces'],
  ])('the endpoint %s means %s', (endpoint, url) => {
    expect(urlOf({ otlp: endpoint, disabled: false }, {})).toBe(url)
    expect(urlOf(undefined, { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint })).toBe(url)
  })

  test('an endpoint for traces alone is used as it is', () => {
    const env = { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${otlp}/mine`, OTEL_EXPORTER_OTLP_ENDPOINT: otlp }
    expect(urlOf(undefined, env)).toBe(`${otlp}/mine`)
  })

  test('the configuration takes precedence', () => {
    const env = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://elsewhere', OTEL_SDK_DISABLED: 'true' }
    expect(urlOf({ otlp, disabled: false }, env)).toBe(`${otlp}/v1/traces`)
    expect(urlOf({ otlp, disabled: true }, { OTEL_EXPORTER_OTLP_ENDPOINT: otlp })).toBeUndefined()
  })

  test.each([{ OTEL_SDK_DISABLED: 'true' }, { OTEL_TRACES_EXPORTER: 'none' }, { OTEL_EXPORTER_OTLP_ENDPOINT: '' }])(
    '%j turns them off',
    (env) => {
      expect(urlOf(undefined, { OTEL_EXPORTER_OTLP_ENDPOINT: otlp, ...env })).toBeUndefined()
    },
  )

  test.each([
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'collector:4318' }, 'http://'],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'nonsense' }, 'http://'],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: otlp, OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' }, 'grpc'],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: otlp, OTEL_EXPORTER_OTLP_PROTOCOL: 'http/xml' }, 'http/xml'],
  ])('%j is ignored with a warning', (env, word) => {
    const { settings, warnings } = traceSettings(undefined, env)
    expect(settings).toBeUndefined()
    expect(warnings).toEqual([expect.stringContaining(word)])
  })
})

describe('F16: the other variables of OpenTelemetry', () => {
  const settingsOf = (env: Record<string, string>) => traceSettings({ otlp, disabled: false }, env)

  test('headers, those for traces alone first, decoded', () => {
    const env = {
      OTEL_EXPORTER_OTLP_HEADERS: 'api-key=secret%20key, x=1,malformed,=2',
      OTEL_EXPORTER_OTLP_TRACES_HEADERS: 'x=%E0%A4%A',
    }
    expect(settingsOf(env).settings?.headers).toEqual({ 'api-key': 'secret key', x: '%E0%A4%A' })
  })

  test.each<[Record<string, string>, object]>([
    [{}, { gzip: false, timeoutMs: 10_000 }],
    [
      { OTEL_EXPORTER_OTLP_COMPRESSION: 'gzip', OTEL_EXPORTER_OTLP_TIMEOUT: '500' },
      { gzip: true, timeoutMs: 500 },
    ],
    [
      { OTEL_EXPORTER_OTLP_TIMEOUT: '500', OTEL_EXPORTER_OTLP_TRACES_TIMEOUT: '700' },
      { gzip: false, timeoutMs: 700 },
    ],
  ])('V22: %j means the delivery %j', (env, delivery) => {
    expect(settingsOf(env)).toMatchObject({ settings: { delivery }, warnings: [] })
  })

  test('V22: with http/json, traces are sent in protobuf, with a warning', () => {
    const { settings, warnings } = settingsOf({ OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json' })
    expect(settings).toBeDefined()
    expect(warnings).toEqual([expect.stringContaining('http/protobuf')])
  })

  test('V22: a variable that has no effect is named in a warning', () => {
    const unused = { OTEL_BSP_SCHEDULE_DELAY: '100', OTEL_EXPORTER_OTLP_CERTIFICATE: 'ca.pem' }
    const without = { OTEL_METRICS_EXPORTER: 'none', OTEL_TRACES_EXPORTER: 'otlp', OTEL_LOG_LEVEL: '' }
    const { warnings } = settingsOf({ ...unused, ...without })
    expect(warnings).toEqual([expect.stringMatching(/: OTEL_BSP_SCHEDULE_DELAY, OTEL_EXPORTER_OTLP_CERTIFICATE\.$/)])
    expect(settingsOf({ OTEL_EXPORTER_OTLP_TIMEOUT: '10s' })).toMatchObject({
      settings: { delivery: { timeoutMs: 10_000 } },
      warnings: [expect.stringContaining('OTEL_EXPORTER_OTLP_TIMEOUT')],
    })
  })

  test.each<[Record<string, string>, object]>([
    [{}, { 'service.name': 'toolway' }],
    [{ OTEL_RESOURCE_ATTRIBUTES: 'service.name=a,team=b%2Cc' }, { 'service.name': 'a', team: 'b,c' }],
    [{ OTEL_RESOURCE_ATTRIBUTES: 'service.name=a', OTEL_SERVICE_NAME: 'mine' }, { 'service.name': 'mine' }],
  ])('%j make the resource %j', (env, resource) => {
    expect(settingsOf(env).settings?.resource).toEqual(resource)
  })

  test.each([
    ['always_on', undefined, { parentBased: false, ratio: 1 }],
    ['always_off', undefined, { parentBased: false, ratio: 0 }],
    ['traceidratio', '0.25', { parentBased: false, ratio: 0.25 }],
    ['parentbased_always_on', undefined, { parentBased: true, ratio: 1 }],
    ['parentbased_always_off', undefined, { parentBased: true, ratio: 0 }],
    ['parentbased_traceidratio', '0.5', { parentBased: true, ratio: 0.5 }],
    ['parentbased_traceidratio', undefined, { parentBased: true, ratio: 1 }],
  ])('the sampler %s with %s', (OTEL_TRACES_SAMPLER, argument, sampling) => {
    const env = { OTEL_TRACES_SAMPLER, ...(argument && { OTEL_TRACES_SAMPLER_ARG: argument }) }
    expect(settingsOf(env)).toMatchObject({ settings: { sampling }, warnings: [] })
  })

  test.each([
    { OTEL_TRACES_SAMPLER: 'jaeger_remote' },
    { OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: '50%' },
    { OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: '-1' },
  ])('%j causes a warning, and everything is recorded', (env) => {
    const { settings, warnings } = settingsOf(env as Record<string, string>)
    expect(settings?.sampling.ratio).toBe(1)
    expect(warnings).toHaveLength(1)
  })
})

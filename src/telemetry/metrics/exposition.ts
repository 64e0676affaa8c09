import type { MetricFamily, MetricSample } from './family.ts'

export interface ExpositionPage {
  readonly contentType: string
  readonly body: string
}

/** The metrics page, in the Prometheus text format unless the Accept header prefers OpenMetrics. */
export const pageOf = (families: readonly MetricFamily[], accept = ''): ExpositionPage =>
  wantsOpenMetrics(accept)
    ? { contentType: 'application/openmetrics-text; version=1.0.0; charset=utf-8', body: openMetrics(families) }
    : { contentType: 'text/plain; version=0.0.4; charset=utf-8', body: prometheusText(families) }

const prometheusText = (families: readonly MetricFamily[]): string =>
  families.map((family) => written(family, family.name, '')).join('')

/** The OpenMetrics page, where the suffix `_total` belongs to a counter's samples but not to its name. */
const openMetrics = (families: readonly MetricFamily[]): string =>
  families
    .map((family) =>
      family.type === 'counter'
        ? written(family, family.name.replace(/_total$/, ''), '_total')
        : written(family, family.name, ''),
    )
    .join('') + '# EOF\n'

/** Whether the Accept header prefers OpenMetrics. If the weights are equal, OpenMetrics wins. */
function wantsOpenMetrics(accept: string): boolean {
  const weights = new Map(accept.split(',').map(weighed))
  const open = weights.get('application/openmetrics-text') ?? 0
  return open > 0 && open >= (weights.get('text/plain') ?? 0)
}

function weighed(range: string): [type: string, weight: number] {
  const [type = '', ...parameters] = range.split(';').map((part) => part.trim().toLowerCase())
  const weight = parameters.find((parameter) => parameter.startsWith('q='))
  return [type, weight === undefined ? 1 : Number(weight.slice(2))]
}

/** The text of one family. A family without samples is written too, so that people can find its name. */
function written({ help, type, samples }: MetricFamily, name: string, suffix: string): string {
  let text = `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n`
  for (const sample of samples()) text += line(name, sample.suffix ?? suffix, sample)
  return text
}

const line = (name: string, suffix: string, { labels, value }: MetricSample): string =>
  `${name}${suffix}${labels === '' ? '' : `{${labels}}`} ${valueText(value)}\n`

function valueText(value: number): string {
  if (Number.isFinite(value) || Number.isNaN(value)) return String(value)
  return value > 0 ? '+Inf' : '-Inf'
}

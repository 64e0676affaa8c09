import { expect, test } from 'vitest'
import { readPage } from '../../telemetry/metrics/exposition.fixture.ts'
import { metricsOf } from '../../telemetry/metrics/metrics.fixture.ts'
import { tell } from '../../telemetry/metrics/observed.fixture.ts'
import { mergeMetrics } from './worker.ts'

test('F15: metrics of several workers are merged, with a label for the worker', () => {
  using one = metricsOf()
  using two = metricsOf()
  tell(one.observer, {}, {})
  tell(two.observer, {})
  const { body, contentType } = mergeMetrics([
    { number: 1, ...one.page() },
    { number: 2, ...two.page() },
  ])
  expect(contentType).toContain('0.0.4')
  const operations = readPage(body).get('toolway_operations_total')?.samples ?? []
  const calls = operations.filter(({ labels }) => labels.get('outcome') === 'answered')
  expect(calls.map(({ labels, value }) => [labels.get('worker'), value])).toEqual([
    ['1', 2],
    ['2', 1],
  ])
  for (const { samples } of readPage(body).values()) {
    for (const { labels } of samples) expect(['1', '2']).toContain(labels.get('worker'))
  }
})

test('F15: OpenMetrics output ends once', () => {
  using metrics = metricsOf()
  const page = metrics.page('application/openmetrics-text')
  const { body } = mergeMetrics([1, 2].map((number) => ({ number, ...page })))
  expect(body.match(/# EOF/g)).toHaveLength(1)
  expect(body.endsWith('# EOF\n')).toBe(true)
})

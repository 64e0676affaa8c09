import { expect, test } from 'vitest'
import { counterFamily, histogramFamily, observe, pageOf, readFamily } from './family.ts'

const calls = counterFamily({ name: 'calls_total', help: 'Calls.', labels: ['tool'] })
calls.of('a').value = 2
const took = histogramFamily({ name: 'took_seconds', help: 'Times.' })
observe(took.of(), 15, 25)
const heat = readFamily({ name: 'heat', help: 'Heat.', type: 'gauge', read: () => [[[], Number.POSITIVE_INFINITY]] })

test('F15: the text format is what Prometheus has always read', () => {
  const { contentType, body } = pageOf([calls, heat])
  expect(contentType).toBe('text/plain; version=0.0.4; charset=utf-8')
  expect(body).toBe(
    '# HELP calls_total Calls.\n# TYPE calls_total counter\ncalls_total{tool="a"} 2\n' +
      '# HELP heat Heat.\n# TYPE heat gauge\nheat +Inf\n',
  )
})

test('F15: OpenMetrics is sent if accepted: counters lose their suffix, and the page ends with EOF', () => {
  const { contentType, body } = pageOf([calls, took], 'application/openmetrics-text;version=1.0.0')
  expect(contentType).toBe('application/openmetrics-text; version=1.0.0; charset=utf-8')
  expect(body).toMatch(/^# HELP calls Calls\.\n# TYPE calls counter\ncalls_total\{tool="a"\} 2\n/)
  expect(body).toContain('took_seconds_bucket{le="30.0"} 1\n')
  expect(body.endsWith('took_seconds_count 1\n# EOF\n')).toBe(true)
})

test.each([
  ['', false],
  ['*/*', false],
  ['text/plain', false],
  ['application/openmetrics-text', true],
  ['application/openmetrics-text;version=1.0.0;q=0.5, text/plain;version=0.0.4;q=0.3, */*;q=0.1', true],
  ['application/openmetrics-text;q=0.2, text/plain;q=0.9', false],
  ['application/openmetrics-text;q=0', false],
  ['application/openmetrics-text;q=oops', false],
])('F15: Accept %j is understood', (accept, open) => {
  expect(pageOf([calls], accept).body.endsWith('# EOF\n')).toBe(open)
})

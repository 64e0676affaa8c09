import type { CallableTool } from '../../constrain/stage-schemas.ts'

const text = { type: 'string' } as const
const tool = (name: string, properties: object, required: readonly string[] = [], more: object = {}): CallableTool => ({
  name,
  description: `Does what its name says: ${name}.`,
  parameters: { type: 'object', properties, required, ...more },
})

/** Tools as people write them: each asks for something else of a constraint. */
export const writtenTools: readonly CallableTool[] = [
  tool('no_arguments', {}),
  { name: 'nothing_said', description: 'A schema that says nothing.', parameters: { type: 'object' } },
  tool('get_weather', { city: text, days: { type: 'integer', minimum: 1, maximum: 16 }, unit: { enum: ['C', 'F'] } }, [
    'city',
  ]),
  tool(
    'create_event',
    {
      title: { ...text, minLength: 1, maxLength: 80 },
      starts: { ...text, format: 'date-time' },
      day: { ...text, format: 'date' },
      guests: { type: 'array', items: { ...text, format: 'email' }, minItems: 1, maxItems: 5 },
      link: { ...text, format: 'uri' },
    },
    ['title', 'starts', 'guests'],
    { additionalProperties: false },
  ),
  tool(
    'get_order',
    { id: { ...text, format: 'uuid' }, ip: { ...text, format: 'ipv4' }, host: { ...text, format: 'hostname' } },
    ['id', 'ip', 'host'],
  ),
  tool(
    'set_price',
    {
      amount: { type: 'number', exclusiveMinimum: 0, maximum: 9999.99 },
      share: { type: 'number', minimum: -1, maximum: 1 },
    },
    ['amount', 'share'],
  ),
  tool(
    'resize',
    {
      width: { type: 'integer', multipleOf: 8, minimum: 8, maximum: 2048 },
      height: { type: 'integer', exclusiveMinimum: 0, exclusiveMaximum: 10_000 },
    },
    ['width', 'height'],
  ),
  tool(
    'find_ticket',
    {
      key: { ...text, pattern: '^[A-Z]{2,5}-[0-9]{1,6}$' },
      branch: { ...text, pattern: '^(feature|fix)/[a-z0-9-]+$' },
    },
    ['key', 'branch'],
  ),
  tool(
    'set_colour',
    { hex: { ...text, pattern: '^#(?:[0-9a-fA-F]{3}){1,2}$' }, note: { ...text, pattern: 'colou?r' } },
    ['hex', 'note'],
  ),
  tool(
    'maybe',
    {
      name: { anyOf: [text, { type: 'null' }] },
      size: { type: ['integer', 'null'] },
      flag: { type: ['boolean', 'string'] },
    },
    ['name', 'size', 'flag'],
  ),
  tool(
    'draw',
    {
      shape: {
        oneOf: [
          {
            type: 'object',
            properties: { kind: { const: 'circle' }, radius: { type: 'number', minimum: 0 } },
            required: ['kind', 'radius'],
          },
          {
            type: 'object',
            properties: {
              kind: { const: 'box' },
              sides: { type: 'array', items: { type: 'number' }, minItems: 2, maxItems: 2 },
            },
            required: ['kind', 'sides'],
          },
        ],
      },
    },
    ['shape'],
  ),
  tool('make_tree', { root: { $ref: '#/$defs/node' } }, ['root'], {
    $defs: {
      node: {
        type: 'object',
        properties: { label: text, children: { type: 'array', items: { $ref: '#/$defs/node' } } },
        required: ['label'],
      },
    },
  }),
  tool('query', { filter: { $ref: '#/definitions/filter' } }, ['filter'], {
    definitions: {
      filter: {
        anyOf: [
          {
            type: 'object',
            properties: { field: text, equals: { type: ['string', 'number', 'boolean'] } },
            required: ['field', 'equals'],
            additionalProperties: false,
          },
          {
            type: 'object',
            properties: { and: { type: 'array', items: { $ref: '#/definitions/filter' }, minItems: 1, maxItems: 4 } },
            required: ['and'],
            additionalProperties: false,
          },
        ],
      },
    },
  }),
  tool(
    'tag',
    {
      labels: { type: 'object', additionalProperties: text },
      counts: { type: 'object', additionalProperties: { type: 'integer' }, maxProperties: 3 },
    },
    ['labels'],
  ),
  tool('set_env', { env: { type: 'object', patternProperties: { '^[A-Z_]+$': text }, additionalProperties: false } }, [
    'env',
  ]),
  tool(
    'move',
    { to: { type: 'array', prefixItems: [{ type: 'number' }, { type: 'number' }], items: false, minItems: 2 } },
    ['to'],
  ),
  tool(
    'plot',
    { points: { type: 'array', items: { type: 'array', items: { type: 'number' }, minItems: 2, maxItems: 3 } } },
    ['points'],
  ),
  tool(
    'choose',
    {
      days: { type: 'array', items: { enum: ['mon', 'tue', 'wed', 'thu'] }, uniqueItems: true, minItems: 1 },
      level: { enum: [1, 2, 3] },
    },
    ['days', 'level'],
  ),
  tool(
    'combine',
    {
      both: {
        allOf: [
          { type: 'object', properties: { a: text }, required: ['a'] },
          { properties: { b: { type: 'integer', maximum: 9 } }, required: ['b'] },
        ],
      },
    },
    ['both'],
  ),
  tool(
    'odd_names',
    { 'größe in "cm"': { type: 'integer' }, 'a/b~c': { type: 'boolean' }, __proto: text, $ref_like: text },
    ['größe in "cm"', 'a/b~c'],
  ),
  tool('free', { anything: {}, list: { type: 'array' }, map: { type: 'object' } }, ['anything', 'list', 'map']),
  tool(
    'deep',
    {
      a: {
        type: 'object',
        properties: {
          b: {
            type: 'object',
            properties: {
              c: {
                type: 'object',
                properties: {
                  d: {
                    type: 'array',
                    items: { type: 'object', properties: { e: { type: 'boolean' } }, required: ['e'] },
                  },
                },
                required: ['d'],
              },
            },
            required: ['c'],
          },
        },
        required: ['b'],
      },
    },
    ['a'],
  ),
  tool(
    'send_mail',
    {
      to: { ...text, format: 'email' },
      subject: { ...text, maxLength: 120 },
      body: text,
      headers: { type: 'object', additionalProperties: text },
      priority: { type: 'string', enum: ['low', 'normal', 'high'], default: 'normal' },
    },
    ['to', 'subject', 'body'],
  ),
  tool(
    'run_sql',
    {
      statement: { ...text, minLength: 8, maxLength: 2000 },
      parameters: { type: 'array', items: { type: ['string', 'number', 'boolean', 'null'] } },
      timeout_ms: { type: 'integer', minimum: 100, maximum: 30_000 },
    },
    ['statement'],
  ),
]

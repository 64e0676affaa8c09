const text = (description: string, more: object = {}) => ({ type: 'string', description, ...more })

/** A schema with every kind of field. */
export const everything = {
  type: 'object',
  properties: {
    title: text('What people see in the list.', { minLength: 3, maxLength: 80 }),
    count: { type: 'integer', description: 'How many.', minimum: 1, maximum: 100, default: 10 },
    ratio: { type: 'number', description: 'Between nothing and all.', exclusiveMinimum: 0, maximum: 1 },
    dryRun: { type: 'boolean', description: 'Only say what would happen.' },
    kind: { enum: ['bug', 'feature', 'question'], description: 'What it is about.' },
    version: { const: 2 },
    due: text('When it must be done.', { format: 'date' }),
    contact: text('Who to ask.', { format: 'email' }),
    labels: { type: 'array', items: { type: 'string' }, maxItems: 5, description: 'Words to find it by.' },
    assignee: {
      type: 'object',
      description: 'Who does it.',
      properties: { name: text('Their name.'), weight: { type: 'number', default: 1 } },
      required: ['name'],
    },
    target: {
      description: 'Where it goes.',
      oneOf: [
        {
          title: 'File',
          type: 'object',
          properties: { kind: { const: 'file' }, path: text('Where.') },
          required: ['kind', 'path'],
        },
        {
          title: 'Webhook',
          type: 'object',
          properties: { kind: { const: 'hook' }, url: text('Whom to tell.', { format: 'uri' }) },
          required: ['kind', 'url'],
        },
      ],
    },
    cursor: { anyOf: [{ type: 'string' }, { type: 'null' }], default: null, description: 'Where to go on.' },
    extra: { type: 'object', additionalProperties: { type: 'string' }, description: 'Anything else.' },
    parent: { $ref: '#/$defs/node' },
  },
  required: ['title', 'kind', 'version'],
  $defs: { node: { type: 'object', properties: { id: { type: 'integer' }, parent: { $ref: '#/$defs/node' } } } },
}

export const search = {
  type: 'object',
  properties: {
    query: text('Words to look for, with the qualifiers of the search of GitHub: `repo:`, `is:open`, `label:`.'),
    sort: { enum: ['created', 'updated', 'comments'], description: 'What comes first.' },
    perPage: { type: 'integer', minimum: 1, maximum: 100, default: 30, description: 'How many to answer with.' },
    page: { type: 'integer', minimum: 1, default: 1 },
  },
  required: ['query'],
}

export const found = {
  type: 'object',
  properties: {
    total: { type: 'integer', description: 'How many there are in all.' },
    items: {
      type: 'array',
      items: {
        type: 'object',
        properties: { number: { type: 'integer' }, title: { type: 'string' }, url: { type: 'string', format: 'uri' } },
      },
    },
  },
}

export const file = {
  type: 'object',
  properties: { path: text('Absolute, inside an allowed folder.'), content: text('The whole of the new text.') },
  required: ['path', 'content'],
}

export const path = {
  type: 'object',
  properties: { path: text('Absolute, inside an allowed folder.') },
  required: ['path'],
}

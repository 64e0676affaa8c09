import { type Case, casesOf, isSelection } from './case.fixture.ts'

const answer = '{"reasoning": "why", "selected_tools": ["a"]}'
const means = { reasoning: 'why', selected_tools: ['a'] }

/** An answer that is well in itself, with something around it. */
export const wrapping: readonly Case[] = [
  ...casesOf(
    'prose before',
    [`Sure! Here is the JSON you asked for:\n\n${answer}`, means],
    [`I'll need the "weather" tool. ${answer}`, means],
    [`As the docs [1] say, {tool} is best. ${answer}`, means],
    [`json\n${answer}`, means],
    [`JSON: ${answer}`, means],
    [`1. Look at the tools.\n2. Choose.\n\n- ${answer}`, means],
  ),
  ...casesOf(
    'prose after',
    [`${answer}\n\nLet me know if you need anything else :-}`, means],
    [`${answer}. I've chosen [a].`, means],
    [`${answer}\n\nNote: "a" isn't the only one.`, means],
  ),
  ...casesOf('prose around', [`Here you are: ${answer} Hope that's fine (it's {good}).`, means]),
  ...casesOf(
    'fence',
    [`\`\`\`json\n${answer}\n\`\`\``, means],
    [`\`\`\`\n${answer}\n\`\`\``, means],
    [`\`\`\`JSON\r\n${answer}\r\n\`\`\`\r\n`, means],
    [`Here:\n\`\`\`json\n${answer}\n\`\`\`\nDone.`, means],
    [`~~~json\n${answer}\n~~~`, means],
    [`\`${answer}\``, means],
  ),
  ...casesOf('fence that is never closed', [`\`\`\`json\n${answer}`, means]),
  ...casesOf('fence that holds a fence', [
    '```json\n{"content": "Run:\\n```sh\\nls\\n```\\nthen look."}\n```',
    { content: 'Run:\n```sh\nls\n```\nthen look.' },
  ]),
  ...casesOf(
    'thinking',
    [`<think>\nMaybe {"selected_tools": []}? No.\n</think>\n${answer}`, means],
    [`<thinking>short</thinking>${answer}`, means],
    [`<reasoning>it's [obvious</reasoning>\n\n\`\`\`json\n${answer}\n\`\`\``, means],
    [`[THINK]hm {[/THINK]${answer}`, means],
    [`<think></think>\n\n<think>again</think>${answer}`, means],
  ),
  ...casesOf('thinking whose start is missing', [`Okay, the user wants {"x": 1}.\n</think>\n\n${answer}`, means]),
  ...casesOf('thinking that holds nothing but the answer', [`<think>\n${answer}`, means]),
  ...casesOf('channels', [
    `<|channel|>analysis<|message|>Use {"a": 2}?<|end|><|start|>assistant<|channel|>final<|message|>${answer}`,
    means,
  ]),
  ...casesOf(
    'special tokens',
    [`${answer}<|im_end|>`, means],
    [`<s>${answer}</s>`, means],
    [`<|start_header_id|>assistant<|end_header_id|>\n\n${answer}<|eot_id|>`, means],
    [`[INST] ${answer} [/INST]`, means],
  ),
  ...casesOf(
    'tags',
    [`<tool_call>\n${answer}\n</tool_call>`, means],
    [`<json>${answer}</json>`, means],
    [`<answer>\n\`\`\`\n${answer}\n\`\`\`</answer>`, means],
  ),
  ...casesOf(
    'code',
    [`const answer = ${answer};`, means],
    [`callback(${answer});`, means],
    [`print(json.dumps(${answer}))`, means],
    [`return ${answer}`, means],
  ),
  ...casesOf(
    'byte order mark and odd spaces',
    [`\uFEFF\u00A0${answer}\u200B`, means],
    ['{\u00A0"a":\u2003[1,\u200B2]\u3000}', { a: [1, 2] }],
  ),
  ...casesOf(
    'encoded as a string',
    [JSON.stringify(answer), means],
    [JSON.stringify(JSON.stringify(answer)), means],
    [`'${answer}'`, means],
  ),
  ...casesOf(
    'escaped without being a string',
    ['{\\"a\\": \\"b\\", \\"c\\": [1, \\"d\\"]}', { a: 'b', c: [1, 'd'] }],
    ['{\\n  \\"a\\": \\"x \\\\\\"y\\\\\\" z\\"\\n}', { a: 'x "y" z' }],
  ),
  ...casesOf('entities', ['{&quot;a&quot;: &quot;b &amp; c&quot;}', { a: 'b & c' }], ['{&#34;a&#34;: 1}', { a: 1 }]),
  ...casesOf('doubled braces', ['{{"a": 1, "b": [2]}}', { a: 1, b: [2] }], ['{{ "a": {"b": 1} }}', { a: { b: 1 } }]),
  ...[
    [
      `The schema {"type": "object", "properties": {"selected_tools": {"type": "array", "items": {"type": "string"}}}} gives ${answer}`,
      means,
    ],
    [`{"draft": true, "reasoning": "a longer text that is not the answer at all, only a draft"} ${answer}`, means],
    [`${answer}\n{"note": "this is longer than the answer itself, but it is no selection of tools"}`, means],
  ].map(([broken, means]) => ({ way: 'several values', broken: broken as string, means, accepts: isSelection })),
  ...[
    [`{"response": ${answer}}`, means],
    [`[${answer}]`, means],
    [`{"ToolSelectionResponse": ${answer}}`, means],
  ].map(([broken, means]) => ({ way: 'an envelope', broken: broken as string, means, accepts: isSelection })),
]

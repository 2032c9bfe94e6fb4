// Steering: each with a reason and a confirmation, and the answer said in words.
import { post, segment, token } from './client.js';
import { h } from './dom.js';
import { parse } from './json.js';

const dialog = document.getElementById('dialog');
const toast = document.getElementById('toast');
const actorSlot = 'outboxd.actor';

function say(text) {
  toast.textContent = text;
  toast.className = 'shown';
  setTimeout(() => { if (toast.textContent === text) toast.className = ''; }, 6000);
}

function field(name, label, control, note) {
  return h('label', { class: 'field' }, h('span', {}, label), control, note ? h('small', {}, note) : null);
}

// Shows a form and runs `submit(values)` until it succeeds or the person gives up. Resolves to
// whether it was done.
function form({ title, text, fields = [], confirm, danger, submit, problem = '' }) {
  return new Promise((resolve) => {
    const message = h('p', { class: 'problem', role: 'alert', hidden: problem === '' }, problem);
    const go = h('button', { type: 'submit', class: danger ? 'danger' : 'main' }, confirm);
    const body = h('form', { method: 'dialog', novalidate: true }, h('h2', { id: 'dialog-title' }, title),
      [].concat(text ?? []).map((paragraph) => h('p', {}, paragraph)), fields, message,
      h('div', { class: 'buttons' }, h('button', { type: 'button', value: 'no', 'data-close': true }, 'Do nothing'), go));
    let done = false;
    body.addEventListener('submit', async (event) => {
      event.preventDefault();
      const missing = [...body.querySelectorAll('[required]')].find((control) => (control.type === 'radio'
        ? !body.querySelector(`input[name="${control.name}"]:checked`) : control.value.trim() === ''));
      if (missing) {
        message.hidden = false;
        message.textContent = missing.dataset.missing;
        missing.focus();
        return;
      }
      go.disabled = true;
      try {
        await submit(Object.fromEntries(new FormData(body)));
        done = true;
        dialog.close();
      } catch (error) {
        message.hidden = false;
        message.textContent = [error.message, error.hint].filter(Boolean).join(' ');
      } finally {
        go.disabled = false;
      }
    });
    body.querySelector('[data-close]').addEventListener('click', () => dialog.close());
    dialog.replaceChildren(body);
    dialog.addEventListener('close', () => { dialog.replaceChildren(); resolve(done); }, { once: true });
    dialog.showModal();
    (body.querySelector('input, textarea') ?? go).focus();
  });
}

export function askToken(problem) {
  if (dialog.open) return Promise.resolve(false);
  return form({
    title: 'Sign in',
    problem,
    text: 'The token is what the file admin.token_file names holds. This tab keeps it until it is closed.',
    fields: [field('token', 'Token', h('input', { type: 'password', name: 'token', required: true, autocomplete: 'off', 'data-missing': 'Paste the token.' }))],
    confirm: 'Sign in',
    submit: ({ token: text }) => token.set(text.trim()),
  });
}

// Asks for the token first where there is none: most steering needs it, and a form filled in for
// nothing is a nuisance.
async function steer(path, options, done) {
  if (!token.get() && !(await askToken(''))) return false;
  return form({
    ...options,
    submit: async (values) => {
      const answer = await post(path, options.body(values));
      if (values.actor) sessionStorage.setItem(actorSlot, values.actor);
      say(done(answer));
    },
  });
}

const reason = (required = true) => field('reason', required ? 'Reason' : 'Reason (optional)', h('textarea', { name: 'reason', rows: 2, required, maxlength: 2000, 'data-missing': 'Say why: it is kept for whoever reads the record later.' }), 'It is kept with the operation.');

function actor() {
  const input = h('input', { name: 'actor', required: true, maxlength: 200, autocomplete: 'name', 'data-missing': 'Say who you are: it is kept.' });
  input.value = sessionStorage.getItem(actorSlot) ?? '';
  return field('actor', 'Your name', input);
}

const operation = (id, verb) => `operations/${segment(id)}/${verb}`;

export const actions = {
  retry: ({ id }) => steer(operation(id, 'retry'), {
    title: 'Try again?',
    text: [`Arms ${id} again with a fresh budget of attempts. It failed without an effect, so this cannot make a second one.`],
    fields: [reason()],
    confirm: 'Retry',
    body: ({ reason: why }) => ({ reason: why }),
  }, () => 'Armed: it is pending again.'),

  cancel: ({ id }) => steer(operation(id, 'cancel'), {
    title: 'Cancel it?',
    text: [`${id} is not carried out, and its id stays taken. When an attempt began meanwhile, it is too late and nothing is changed.`],
    fields: [reason(false)],
    confirm: 'Cancel the operation',
    danger: true,
    body: ({ reason: why }) => (why.trim() ? { reason: why } : {}),
  }, () => 'Cancelled.'),

  probe: async ({ id }) => {
    if (!token.get() && !(await askToken(''))) return false;
    try {
      const { answer } = await post(operation(id, 'probe'), {});
      say(answer === 'probing' ? 'It is being asked already.' : 'The other side is asked within a second or so.');
      return true;
    } catch (error) {
      say(error.message);
      return error.status === 409;
    }
  },

  resolve: ({ id, epoch, settled }) => steer(operation(id, 'resolve'), {
    title: 'Did it happen?',
    text: [`Look at the other side first. ${id} ends or is tried again on your word alone.`,
      settled && Date.parse(settled) > Date.now() ? `A request may still be on its way until ${settled}: "did not happen" is refused before.` : null].filter(Boolean),
    fields: [
      h('fieldset', {}, h('legend', {}, 'Your verdict'),
        h('label', { class: 'choice' }, h('input', { type: 'radio', name: 'verdict', value: 'applied', required: true, 'data-missing': 'Choose a verdict.' }), h('span', {}, h('strong', {}, 'It happened'), ' It ends as succeeded.')),
        h('label', { class: 'choice' }, h('input', { type: 'radio', name: 'verdict', value: 'not_applied' }), h('span', {}, h('strong', {}, 'It did not happen'), ' It is tried again at once.'))),
      field('result', 'Result, if it happened (JSON, optional)', h('textarea', { name: 'result', rows: 2, class: 'mono', spellcheck: 'false', placeholder: '{"id": "T-123"}' })),
      reason(),
      actor(),
    ],
    confirm: 'Record the verdict',
    danger: true,
    body: (values) => {
      const body = { verdict: values.verdict, reason: values.reason, actor: values.actor, expected_epoch: Number(epoch) };
      if (values.result.trim()) {
        try { body.result = parse(values.result); } catch { throw new Error('The result is no JSON.'); }
      }
      return body;
    },
  }, () => 'The verdict is recorded.'),

  acknowledge: ({ id }) => steer(operation(id, 'acknowledge'), {
    title: 'Clear the flag?',
    text: [`You know what became of ${id}, and did what it takes. Its state stays what it is.`],
    fields: [reason(), actor()],
    confirm: 'Acknowledge',
    body: ({ reason: why, actor: who }) => ({ reason: why, actor: who }),
  }, () => 'Acknowledged.'),

  compensate: ({ id, name }) => steer(operation(id, 'compensate'), {
    title: `Undo it by ${name}?`,
    text: [`Starts the compensation ${name} of ${id}, once: a second effect, which is meant to undo the first.`],
    fields: [
      field('arguments', 'Arguments of the compensation (JSON, optional)', h('textarea', { name: 'arguments', rows: 2, class: 'mono', spellcheck: 'false', placeholder: '{}' })),
      reason(false),
    ],
    confirm: `Start ${name}`,
    danger: true,
    body: (values) => {
      const body = { name };
      if (values.reason.trim()) body.reason = values.reason;
      if (values.arguments.trim()) {
        try { body.arguments = parse(values.arguments); } catch { throw new Error('The arguments are no JSON.'); }
      }
      return body;
    },
  }, (answer) => `${answer.operation_id} is ${answer.status}.`),

  pause: ({ tool }) => steer(`tools/${segment(tool)}/pause`, {
    title: `Pause ${tool}?`,
    text: ['No new attempts of it start anywhere. What runs ends, look-ups go on, planners may go on enqueueing.'],
    fields: [reason()],
    confirm: 'Pause the tool',
    danger: true,
    body: ({ reason: why }) => ({ reason: why }),
  }, () => `${tool} is paused.`),

  resume: ({ tool }) => steer(`tools/${segment(tool)}/resume`, {
    title: `Resume ${tool}?`,
    text: ['What waited is carried out at once.'],
    confirm: 'Resume the tool',
    body: () => ({}),
  }, () => `${tool} goes on.`),
};

export function showHelp() {
  if (dialog.open) return;
  const keys = [['/', 'open an operation by its id'], ['j k ↓ ↑', 'next or previous row'], ['Enter', 'open what is in focus'], ['Esc', 'back, or close'], ['n p', 'older or newer page'], ['g o', 'overview, operations'], ['?', 'this help']];
  const close = h('button', { type: 'button', class: 'main' }, 'Close');
  close.addEventListener('click', () => dialog.close());
  dialog.replaceChildren(h('div', {}, h('h2', { id: 'dialog-title' }, 'Keys'),
    h('dl', { class: 'keys' }, keys.map(([key, what]) => [h('dt', {}, key.split(' ').map((one) => h('kbd', {}, one))), h('dd', {}, what)])),
    h('div', { class: 'buttons' }, close)));
  dialog.showModal();
}

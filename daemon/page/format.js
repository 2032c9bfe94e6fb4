// Times, numbers and states for people.
import { h } from './dom.js';

export const statuses = ['unknown', 'attempting', 'pending', 'scheduled', 'succeeded', 'failed', 'cancelled'];

// A shape for each state, so that colour is never all there is.
const shapes = {
  pending: [['circle', { cx: 8, cy: 8, r: 5.2, class: 'line' }]],
  scheduled: [['circle', { cx: 8, cy: 8, r: 5.8, class: 'line' }], ['path', { d: 'M8 4.8V8.2L10.4 9.6', class: 'line' }]],
  attempting: [['path', { d: 'M4.5 3 12.5 8 4.5 13z', class: 'fill' }]],
  unknown: [['path', { d: 'M8 1 15 8 8 15 1 8z', class: 'fill' }], ['path', { d: 'M6.4 6.5a1.7 1.7 0 1 1 2.5 1.5c-.6.3-.9.6-.9 1.2M8 11v.3', class: 'cut' }]],
  succeeded: [['circle', { cx: 8, cy: 8, r: 6.6, class: 'fill' }], ['path', { d: 'M5 8.3 7.1 10.4 11 6', class: 'cut' }]],
  failed: [['rect', { x: 1.8, y: 1.8, width: 12.4, height: 12.4, rx: 2, class: 'fill' }], ['path', { d: 'M5.4 5.4 10.6 10.6M10.6 5.4 5.4 10.6', class: 'cut' }]],
  cancelled: [['circle', { cx: 8, cy: 8, r: 5.8, class: 'line' }], ['path', { d: 'M4.2 11.8 11.8 4.2', class: 'line' }]],
  attention: [['path', { d: 'M8 1.5 15 14H1z', class: 'fill' }], ['path', { d: 'M8 6v3.6M8 11.6v.3', class: 'cut' }]],
};

export function shape(name) {
  return h('svg', { class: 'shape', viewBox: '0 0 16 16', width: 14, height: 14, 'aria-hidden': 'true' },
    (shapes[name] ?? shapes.pending).map(([tag, attributes]) => h(tag, attributes)));
}

export function pill(status, text = status) {
  return h('span', { class: `pill is-${statuses.includes(status) || status === 'attention' ? status : 'other'}` }, shape(status), text);
}

export function count(value) {
  return Number(value ?? 0).toLocaleString('en-US');
}

export function share(value) {
  if (value === null || value === undefined) return '–';
  const percent = Number(value) * 100;
  return percent === 0 ? '0 %' : percent < 0.01 ? '< 0.01 %' : `${percent.toPrecision(3).replace(/\.?0+$/, '')} %`;
}

export function seconds(total) {
  const s = Math.max(0, Math.round(total));
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min${s < 600 && s % 60 ? ` ${s % 60} s` : ''}`;
  if (s < 86400) return `${Math.floor(s / 3600)} h${s % 3600 >= 60 ? ` ${Math.floor(s % 3600 / 60)} min` : ''}`;
  return `${Math.floor(s / 86400)} d${s % 86400 >= 3600 ? ` ${Math.floor(s % 86400 / 3600)} h` : ''}`;
}

// Postgres' interval: "3 days 04:05:06.7", "00:00:12", "1 mon 2 days".
export function interval(text) {
  if (!text) return null;
  let total = 0;
  for (const [, number, unit] of text.matchAll(/(-?\d+) (year|mon|day)/g)) total += Number(number) * { year: 31557600, mon: 2629800, day: 86400 }[unit];
  const clock = /(-?)(\d+):(\d\d):(\d\d(?:\.\d+)?)/.exec(text);
  if (clock) total += (clock[1] ? -1 : 1) * (Number(clock[2]) * 3600 + Number(clock[3]) * 60 + Number(clock[4]));
  return total;
}

export function age(text) {
  if (!text) return '–';
  if (text === 'infinity') return 'never by itself';
  const distance = (Date.now() - Date.parse(text)) / 1000;
  return distance >= -0.5 ? `${seconds(distance)} ago` : `in ${seconds(-distance)}`;
}

export function stamp(text) {
  if (!text) return '–';
  if (text === 'infinity') return 'never by itself';
  const date = new Date(text);
  return Number.isNaN(date.getTime()) ? text : `${date.toLocaleDateString('sv-SE')} ${date.toLocaleTimeString('sv-SE')}`;
}

export function time(text) {
  return h('time', { datetime: text, title: `${stamp(text)} (${text})` }, age(text));
}

-- +goose Up
CREATE TABLE goods (id int PRIMARY KEY, name varchar(100) NOT NULL);
INSERT INTO goods VALUES (1, 'tea'), (2, 'milk');

-- +goose Down
DROP TABLE goods;
